"""The lab in a real browser: what is promised to those who open the page."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

import tokenflock as flock
from tokenflock import dynamics, observables, parts, solvers
from tokenflock.starts import Given, Uniform
from tokenflock.theory import layer_cosines

pytestmark = pytest.mark.browser
LAST = (
    "(() => { const frame = tokenflockLab.history.last(); return [frame.index, [...frame.x]]; })()"
)
PLAYING = "tokenflockLab.playing"


def fragment(state) -> str:
    text = state if isinstance(state, str) else json.dumps(state)
    return "#" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def advanced(page, steps: int):
    """The tokens of the page after this many steps."""
    page.evaluate(f"tokenflockLab.advance({steps})")
    page.wait_for_function(f"tokenflockLab.history.last()?.index === {steps}")
    return np.array(page.evaluate(LAST)[1])


def test_it_opens_from_disk_plays_pauses_and_goes_back(visit):
    page = visit()
    page.click("#play")
    page.wait_for_function("tokenflockLab.history.length > 20")
    page.click("#play")
    assert not page.evaluate(PLAYING)
    page.wait_for_timeout(200)
    steps = page.evaluate("tokenflockLab.history.last()?.index")
    page.wait_for_timeout(200)
    assert page.evaluate("tokenflockLab.history.last()?.index") == steps
    page.evaluate("tokenflockLab.shown = 3; tokenflockLab.dirty = true")
    page.wait_for_function("document.getElementById('scrub').value === '3'")
    page.click("#once")
    page.wait_for_function("tokenflockLab.shown === null")
    page.click("#again")
    page.wait_for_function("tokenflockLab.history.last()?.index === 0")


CASES = {
    "contracting": (dynamics.SelfAttention(beta=4.0), solvers.Layer(h=0.1), 3, 300, 1e-12),
    "flow": (dynamics.SelfAttention(beta=2.0), solvers.RK4(h=0.1), 2, 300, 1e-12),
    "repulsive": (
        dynamics.SelfAttention(beta=4.0, repulsive=True),
        solvers.Layer(h=0.1),
        3,
        300,
        1e-9,
    ),
    "noisy": (dynamics.Noisy(kappa=20.0), solvers.EulerMaruyama(h=0.01), 2, 100, 1e-9),
}


@pytest.mark.parametrize("case", CASES)
def test_its_tokens_are_those_of_simulate_with_the_same_seed(visit, case, tmp_path):
    law, solver, d, steps, tolerance = CASES[case]
    start = Uniform(n=32, d=d)
    page = flock.lab(law, start, solver=solver, seed=5, embed=True, play=False)
    path = page.save(tmp_path / "figure.html")
    page = visit(path=path)
    tokens = advanced(page, steps).reshape(32, d)
    run = flock.simulate(law, start, t=steps * solver.h, solver=solver, frames=2, seed=5)
    assert np.abs(tokens - run.x.values[-1]).max() < tolerance


FAST = {"law": "Unnormalised", "values": {"beta": 8.0}, "n": 32, "d": 3}
COUNT = "tokenflockLab.seen('cluster_count')[0]"


@pytest.mark.parametrize("named", [{}, {"solver": "RK4"}], ids=["nothing", "the solver"])
def test_a_step_that_nobody_chose_is_divided_until_it_is_accurate(visit, named):
    law, start = dynamics.Unnormalised(beta=8.0), Uniform(n=32, d=3)
    run = flock.simulate(law, start, t=20, frames=2, observe=[observables.ClusterCount()])
    page = visit(fragment(FAST | named))
    tokens = advanced(page, 200).reshape(32, 3)
    assert page.evaluate(COUNT) == run.cluster_count.values[-1] == 2
    np.testing.assert_allclose(tokens, run.x.values[-1], atol=0.01)
    page.wait_for_function("document.getElementById('accuracy').textContent.startsWith('steps of')")
    page.click("[data-open=leave]")
    scope: dict = {}
    snippet = page.locator("#snippet").text_content()
    exec(snippet, scope)
    np.testing.assert_allclose(scope["run"].x.values[-1], run.x.values[-1], atol=0.01)
    assert "# The page divided its steps of 0.1 into up to" in snippet
    told = json.loads(saved(page, "#json"))["frames"][-1]["accuracy"]
    assert told["parts"] >= 64 and told["step"] == 0.1 / told["parts"] and told["error"] <= 0.02
    assert f"--step {told['step']}" in page.locator("#line").text_content()
    table = np.genfromtxt(saved(page, "#csv").decode().splitlines(), delimiter=",", names=True)
    assert table["h"][-1] == told["step"] and table["error"][-1] == told["error"]


def test_a_law_too_fast_for_the_page_is_refused_with_a_remedy(visit):
    page = visit(fragment(FAST | {"values": {"beta": 16.0}}))
    page.click("#play")
    page.wait_for_function("document.getElementById('say').textContent.includes('too fast')")
    said = page.locator("#say").text_content()
    assert "smaller beta" in said and "'peak'" in said and "solver layer" in said
    assert not page.evaluate(PLAYING)
    assert page.evaluate("tokenflockLab.history.last()?.index") == 0
    page.select_option("[data-field='choice.clock']", "peak")
    assert page.evaluate("tokenflockLab.state.solver") == "Layer"
    advanced(page, 3)


def test_a_step_that_was_chosen_runs_as_it_is_and_its_error_is_told(visit):
    law, start = dynamics.Unnormalised(beta=8.0), Uniform(n=32, d=3)
    page = visit(fragment(FAST | {"solver": "RK4", "h": 0.1}))
    page.evaluate("tokenflockLab.advance(1)")
    page.wait_for_function("tokenflockLab.history.last()?.index === 1")
    with pytest.warns(flock.errors.AccuracyWarning, match="too long"):
        run = flock.simulate(law, start, t=0.1, solver=solvers.RK4(h=0.1), frames=2)
    np.testing.assert_allclose(page.evaluate(LAST)[1], run.x.values[-1].ravel(), atol=1e-4)
    page.wait_for_function("document.getElementById('accuracy').textContent.includes('too long')")
    page.click("[data-open=leave]")
    assert "the step is too long." in page.locator("#snippet").text_content()
    assert not json.loads(saved(page, "#json"))["frames"][-1]["accuracy"]["fine"]
    page.select_option("[data-field='chosen']", "solver")
    page.evaluate("tokenflockLab.advance(2)")
    page.wait_for_function("tokenflockLab.history.last()?.index === 2")
    assert page.evaluate("tokenflockLab.history.last()?.accuracy.fine")
    page.locator("[data-field='h']").fill("0.2")
    page.locator("[data-field='h']").press("Enter")
    assert page.locator("[data-field='chosen']").input_value() == "step"
    page.evaluate("tokenflockLab.advance(3)")
    page.wait_for_function("tokenflockLab.history.last()?.accuracy.fine === false")


def test_a_step_that_is_fine_is_not_divided(visit):
    state = {"law": "SelfAttention", "values": {"beta": 4.0}, "n": 32, "d": 2, "solver": "RK4"}
    page = visit(fragment(state))
    tokens = advanced(page, 100)
    assert page.evaluate("tokenflockLab.history.last()?.accuracy.parts") == 1
    assert page.locator("#accuracy").text_content() == ""
    kept = visit(fragment(state | {"h": 0.1}))
    np.testing.assert_array_equal(advanced(kept, 100), tokens)


def test_its_own_draws_are_those_of_the_library_to_single_precision(visit):
    page = visit(fragment({"law": "SelfAttention", "n": 20, "d": 3, "seed": 7}))
    tokens = np.array(page.evaluate(LAST)[1]).reshape(20, 3)
    run = flock.simulate(dynamics.SelfAttention(), Uniform(n=20, d=3), t=0.1, frames=2, seed=7)
    assert np.abs(tokens - run.x.values[0]).max() < 2e-7


def test_instruments_are_the_observables_of_the_library(visit):
    page = visit(fragment({"law": "SelfAttention", "values": {"beta": 4.0}, "n": 40, "d": 3}))
    tokens = advanced(page, 60).reshape(40, 3)
    page.wait_for_function("tokenflockLab.history.last()?.seen.energy !== undefined")
    w = np.full(40, 1 / 40)
    seen = [
        observables.Energy(beta=4.0),
        observables.OrderParameter(),
        observables.MeanCosine(),
        observables.ClusterCount(),
        observables.ClusterLabels(),
        observables.Histogram(bins=60),
    ]
    from tokenflock.precision import precision

    with precision("float64"):
        wanted = {each.name: np.asarray(each.measure(tokens, w)) for each in seen}
    for name, values in wanted.items():
        told = page.evaluate(f"[...tokenflockLab.history.last()?.seen.{name}]")
        np.testing.assert_allclose(np.array(told), values.reshape(-1), rtol=1e-10, atol=1e-12)


def test_beta_changes_while_it_runs_and_a_bad_value_is_marked_in_the_words_of_the_library(visit):
    page = visit(fragment({"law": "Noisy", "d": 2}))
    page.click("#play")
    box = page.locator("[data-field='kappa']")
    box.fill("-1")
    box.press("Enter")
    wrong = page.locator(".row.bad .wrong")
    with pytest.raises(flock.UserError) as said:
        dynamics.Noisy(kappa=-1)
    assert wrong.text_content() == str(said.value).replace("-1.0", "-1")
    assert page.evaluate("tokenflockLab.state.values.kappa") is None
    box.fill("50")
    box.press("Enter")
    assert page.locator(".row.bad").count() == 0
    assert page.evaluate("tokenflockLab.state.values.kappa") == 50
    assert page.evaluate(PLAYING)
    box.fill("<b>1</b>")
    box.press("Enter")
    assert "must be a number" in (wrong.text_content() or "")


def test_every_law_of_the_catalogue_runs_without_a_complaint(visit):
    page = visit()
    names = page.evaluate("tokenflockLab.schema.laws.map((law) => law.name)")
    known = {entry.name for entry in flock.catalogue.entries("dynamics")}
    assert known - set(names) == set()
    for name in names:
        page.select_option("[data-field='law']", name)
        page.wait_for_function("tokenflockLab.history.last()?.index === 0")
        page.evaluate("tokenflockLab.advance(3)")
        page.wait_for_function("tokenflockLab.history.last()?.index === 3", timeout=20000)
        assert page.locator("#say").text_content() == "", name
        assert page.evaluate("tokenflockLab.history.last().x.every(Number.isFinite)"), name


def test_tokens_can_be_dragged_added_removed_and_merged(visit):
    page = visit(fragment({"law": "SelfAttention", "values": {"beta": 4.0}, "n": 6, "d": 2}))
    page.wait_for_function("tokenflockLab.drawn !== null")
    box = page.locator("#stage").bounding_box()
    x, y = page.evaluate("tokenflockLab.drawn.places[0].slice(0, 2)")
    page.check("input[value=move]")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle[0] + 200, middle[1], steps=4)
    page.mouse.up()
    page.wait_for_function("tokenflockLab.state.edited !== null")
    np.testing.assert_allclose(
        page.evaluate("tokenflockLab.state.edited.slice(0, 2)"), [1, 0], atol=0.05
    )
    page.check("input[value=add]")
    page.mouse.click(middle[0], middle[1] + 150)
    page.wait_for_function("tokenflockLab.state.n === 7")
    np.testing.assert_allclose(
        page.evaluate("tokenflockLab.state.edited.slice(12)"), [0, -1], atol=0.05
    )
    page.check("input[value=remove]")
    page.wait_for_function(
        "tokenflockLab.shownFrame().n === 7 && tokenflockLab.drawn.places.length === 7"
    )
    place = page.evaluate("tokenflockLab.drawn.places[6]")
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_function("tokenflockLab.state.n === 6")
    page.evaluate("tokenflockLab.advance(400)")
    page.wait_for_function("tokenflockLab.history.last()?.index >= 400")
    page.wait_for_function("tokenflockLab.seen('cluster_count')[0] < 6")
    page.click("#merge")
    page.wait_for_function("tokenflockLab.state.n < 6")
    assert abs(sum(page.evaluate("tokenflockLab.state.weights")) - 1) < 1e-12


def test_a_link_restores_the_state(visit):
    state = {"law": "Causal", "values": {"beta": 7.5}, "n": 21, "d": 2, "seed": 9, "h": 0.05}
    page = visit(fragment(state))
    first = advanced(page, 20)
    link = page.evaluate("location.hash")
    again = visit(link)
    np.testing.assert_array_equal(advanced(again, 20), first)
    assert again.evaluate("tokenflockLab.state.values.beta") == 7.5


HOSTILE = [
    "#%%%",
    "#" + "A" * 300_000,
    fragment("[1, 2"),
    fragment('"<img src=x onerror=alert(1)>"'),
    fragment({"law": "<img src=x onerror=alert(1)>"}),
    fragment({"law": "__proto__", "choices": {"__proto__": 1}, "values": {"beta": "NaN"}}),
    fragment({"n": 1_000_000}),
    fragment({"n": -3, "h": 0, "seed": 1.5, "d": 77, "rate": -1}),
    fragment('{"n": 1e400, "values": {"beta": 1e999}}'),
    fragment({"edited": [None, 1, 2]}),
    fragment({"start": "constructor", "solver": "toString", "delta": 3}),
]


@pytest.mark.parametrize("link", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_link_ends_in_a_message(visit, link):
    page = visit(link)
    page.wait_for_function("document.getElementById('say').textContent !== ''")
    assert page.locator("#say img, #say b, #what img").count() == 0
    page.click("#once")
    page.wait_for_function("tokenflockLab.history.last()?.index === 1")


def test_tokens_that_leave_the_numbers_end_in_a_message(visit):
    state = {"law": "PureAttention", "h": 1e6, "n": 8, "d": 2}
    page = visit(fragment(state))
    page.click("#play")
    page.wait_for_function(
        "document.getElementById('say').textContent.includes('left the numbers')"
    )
    assert not page.evaluate(PLAYING)


def test_a_worker_that_does_not_answer_is_stopped(visit):
    page = visit()
    page.evaluate("tokenflockLab.runner.patience = 300; tokenflockLab.runner.worker.terminate()")
    page.click("#play")
    page.wait_for_function("document.getElementById('say').textContent.includes('was stopped')")
    page.click("#again")
    page.click("#once")
    page.wait_for_function("tokenflockLab.history.last()?.index >= 1")


def saved(page, button: str):
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_bytes()


def test_exports_can_be_opened_again(visit, tmp_path):
    page = visit(fragment({"law": "SelfAttention", "values": {"beta": 4.0}, "n": 12, "d": 2}))
    page.click("#play")
    page.wait_for_function("tokenflockLab.history.length > 30")
    page.click("#play")
    page.click("[data-open=leave]")
    assert saved(page, "#png").startswith(b"\x89PNG")
    import xml.etree.ElementTree as tree

    drawn = tree.fromstring(saved(page, "#svg"))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}circle")) >= 12
    assert len(tree.fromstring(saved(page, "[data-panel=energy] .save:last-child"))) > 3
    table = np.genfromtxt(saved(page, "#csv").decode().splitlines(), delimiter=",", names=True)
    assert np.allclose(table["x0"] ** 2 + table["x1"] ** 2, 1)
    told = json.loads(saved(page, "#json"))
    assert told["format"] == "tokenflock lab run" and len(told["frames"]) > 30
    film = saved(page, "#film")
    assert film[:4] == b"\x1aE\xdf\xa3" and len(film) > 2000
    moving = Image.open(io.BytesIO(saved(page, "#gif")))
    assert moving.n_frames > 30 and moving.size == (420, 420)
    first = np.asarray(moving.convert("RGB"))
    moving.seek(moving.n_frames - 1)
    assert tuple(first[2, 2]) == (255, 255, 255)  # paper
    assert (first != np.asarray(moving.convert("RGB"))).any(axis=-1).mean() > 0.001
    (tmp_path / "again.html").write_bytes(saved(page, "#html"))
    again = visit(path=tmp_path / "again.html")
    assert again.evaluate("tokenflockLab.state.values.beta") == 4


def test_the_python_that_it_writes_makes_the_same_tokens(visit):
    state = {"law": "Unnormalised", "values": {"beta": 1.5}, "n": 9, "d": 3, "seed": 4}
    page = visit(fragment(state))
    tokens = advanced(page, 30).reshape(9, 3)
    page.click("[data-open=leave]")
    scope: dict = {}
    exec(page.locator("#snippet").text_content(), scope)
    assert np.abs(scope["run"].x.values[-1] - tokens).max() < 1e-5  # the start is to 1e-7


def test_snippets_and_command_lines_of_every_law_are_understood(visit):
    import shlex

    from tokenflock.cli.app import build

    page = visit(fragment({"n": 9, "d": 2}))
    page.click("[data-open=leave]")
    typed = 0
    for name in page.evaluate("tokenflockLab.schema.laws.map((law) => law.name)"):
        page.select_option("[data-field='law']", name)
        page.click("[data-open=leave]")
        page.click("[data-open=leave]")
        scope: dict = {}
        exec(page.locator("#snippet").text_content().partition("run =")[0], scope)
        assert type(scope["law"]).__name__ == name
        if page.locator("#line").count():
            typed += 1
            _, *words = shlex.split(page.locator("#line").text_content())
            build(words).parse_args(words, exit_on_error=False, print_error=False)
    assert typed > 15


def test_a_notebook_runs_it_in_a_frame(browser):
    figure = flock.lab(dynamics.SelfAttention(beta=4.0), Uniform(n=8, d=2), embed=True, play=True)
    page = browser.new_page()
    page.set_content(f"<p>a cell</p>{figure._repr_html_()}")
    frame = page.wait_for_selector("iframe").content_frame()
    frame.wait_for_function("window.tokenflockLab && tokenflockLab.history.length > 3")
    page.close()


def test_a_figure_plays_while_it_is_seen_and_only_then(browser, tmp_path):
    law, start = dynamics.SelfAttention(beta=4.0), Uniform(n=8, d=2)
    flock.lab(law, start, embed=True, panels=["energy"]).save(tmp_path / "figure.html")
    far = '<div style="height:4000px">text</div>'
    frame = '<iframe src="figure.html" style="width:360px;height:420px"></iframe>'
    (tmp_path / "page.html").write_text(f"{far}{frame}{far}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    # looked at by the clock: frames that are out of sight have no pictures to wait for
    inside = page.wait_for_selector("iframe").content_frame()
    inside.wait_for_function(
        "window.tokenflockLab && tokenflockLab.history.length > 0", polling=100
    )
    assert inside.evaluate("document.documentElement.scrollWidth") <= 360
    page.wait_for_timeout(500)
    assert inside.evaluate("tokenflockLab.history.last().index") == 0
    page.evaluate("scrollTo(0, 3900)")
    inside.wait_for_function("tokenflockLab.history.last().index > 5", polling=100)
    page.evaluate("scrollTo(0, 0)")
    inside.wait_for_function("!tokenflockLab.playing", polling=100)
    page.evaluate("scrollTo(0, 3900)")
    inside.wait_for_function("tokenflockLab.playing", polling=100)
    page.close()


def test_no_figure_moves_where_less_motion_is_asked_for(browser, tmp_path):
    law, start = dynamics.SelfAttention(beta=4.0), Uniform(n=8, d=2)
    path = flock.lab(law, start, embed=True).save(tmp_path / "figure.html")
    page = browser.new_page(reduced_motion="reduce")
    page.goto(path.as_uri())
    page.wait_for_function("window.tokenflockLab && tokenflockLab.history.length > 0")
    page.wait_for_timeout(500)
    assert page.evaluate("tokenflockLab.history.last().index") == 0
    page.close()


def test_a_block_is_built_of_parts_and_what_does_not_fit_is_said(visit):
    choices = {"heads": "4", "mask": "causal", "positions": "alibi", "feed_forward": "gelu"}
    page = visit(fragment({"law": "Block", "choices": choices, "n": 12, "d": 8}))
    first = np.array(page.evaluate(LAST)[1]).reshape(12, 8)
    tokens = advanced(page, 300).reshape(12, 8)
    heads, feeding = parts.RandomHeads(4).draw(8), parts.RandomFeedForward("gelu").draw(8)
    given = {"heads": heads, "mask": "causal", "positions": "alibi", "feed_forward": feeding}
    block = dynamics.Block(**given)
    run = flock.simulate(block, Given(first), t=30, solver=solvers.Layer(h=0.1), frames=2)
    assert np.abs(tokens - run.x.values[-1]).max() < 1e-12
    seen = page.evaluate("[...tokenflockLab.history.last().seen.attention]")
    assert np.abs(np.triu(np.reshape(seen, (12, 12)), 1)).max() == 0
    page.select_option("[data-field='choice.attention']", "sinkhorn")
    assert "doubly stochastic" in page.locator(".row.bad .wrong").text_content()
    assert page.locator("[data-field='choice.attention']").input_value() == "softmax"
    page.select_option("[data-field='choice.noise']", "common")
    page.locator("[data-field='noise.kappa']").fill("5")
    page.locator("[data-field='noise.kappa']").press("Enter")
    page.click("[data-open=leave]")
    scope: dict = {}
    exec(page.locator("#snippet").text_content().partition("run =")[0], scope)
    noise = parts.CommonNoise(kappa=5.0)
    assert repr(scope["law"]) == repr(dynamics.Block(**given, noise=noise))


def test_a_link_with_parts_that_do_not_go_together_is_mended(visit):
    choices = {"mask": "causal", "attention": "sinkhorn", "norm": "mix", "noise": "value"}
    page = visit(fragment({"law": "Block", "choices": choices, "n": 8, "d": 2}))
    page.wait_for_function("document.getElementById('say').textContent.includes('radius')")
    assert page.evaluate("tokenflockLab.state.choices.attention") == "softmax"
    advanced(page, 5)


def test_the_cosine_of_theory_stands_beside_the_measurement_for_every_n(visit):
    page = visit(fragment({"law": "SelfAttention", "values": {"beta": 2.0}, "n": 50, "d": 8}))
    advanced(page, 60)
    curve = np.reshape(page.evaluate("tokenflockLab.curve()"), (-1, 2))
    wanted = layer_cosines(np.round(curve[:, 0] / 0.1).astype(int), n=50, beta=2.0, h=0.1)
    np.testing.assert_allclose(curve[:, 1], wanted, atol=1e-9)
    assert curve[-1, 0] == pytest.approx(6.0)


@pytest.mark.filterwarnings("ignore:the state is not at rest")
def test_growth_rates_and_the_next_merge_are_told_beside_the_measurement(visit):
    state = {"law": "SelfAttention", "values": {"beta": 6.0}, "n": 24, "d": 2, "rate": 60}
    page = visit(fragment(state))
    page.click("#play")
    page.wait_for_function("tokenflockLab.seen('lifetime')?.[2] === 1", timeout=60000)
    life = page.evaluate("[...tokenflockLab.seen('lifetime')]")
    page.wait_for_function(
        f"tokenflockLab.history.merges.some((merge) => merge.to < {life[1]})", timeout=60000
    )
    page.click("#play")
    came = page.evaluate(f"tokenflockLab.history.merges.find((m) => m.to < {life[1]}).t")
    assert abs(came - life[0]) < 0.05 * life[0] + 1
    frame = page.evaluate(
        "(() => { const frames = tokenflockLab.history.frames.filter((f) => f.seen.spectrum);"
        "const f = frames[frames.length - 1]; return [[...f.x], [...f.seen.spectrum]]; })()"
    )
    x, modes = np.array(frame[0]).reshape(24, 2), np.array(frame[1]).reshape(-1, 2)
    law = dynamics.SelfAttention(beta=6.0)
    wanted = flock.spectrum(law, x, t=0.1, solver=solvers.Layer(h=0.1))
    np.testing.assert_allclose(modes[:, 0], wanted.rate.values, atol=1e-5)


def test_a_click_on_the_map_runs_to_that_time(visit):
    page = visit()
    page.click("[data-open=map]")
    canvas = page.locator("#map canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.4, "y": box["height"] * 0.7})
    page.wait_for_function("tokenflockLab.here !== null")
    here = page.evaluate("tokenflockLab.here")
    page.wait_for_function("tokenflockLab.history.length > 1 && !tokenflockLab.playing")
    assert abs(page.evaluate("tokenflockLab.history.last()?.t") - here["t"]) < 1e-6
    assert page.evaluate("tokenflockLab.state.values.beta") == here["beta"]


def test_every_lesson_opens(visit):
    page = visit()
    page.click("[data-open=lessons]")
    count = page.locator("#lessons .steps button").count() - 1
    assert count >= 10
    for k in range(count):
        page.click(f"#lessons .steps button:nth-child({k + 1})")
        page.wait_for_function("tokenflockLab.history.length > 0")
        page.wait_for_timeout(150)
        asked = page.locator("#lessons strong").text_content()
        assert asked.endswith("?") and asked.count("?") == 1
        said = (page.locator("#lessons").text_content() or "") + asked
        assert not set("^{}") & set(said)  # powers are set above the line
    page.wait_for_function("tokenflockLab.recording !== null")  # the last one has a model
    assert page.locator("#say").text_content() == ""


def test_on_a_phone_a_lesson_is_read_beside_what_it_speaks_of(visit):
    page = visit(width=390)
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("[data-open=lessons]")
    ends = "(name) => document.querySelector(name).getBoundingClientRect()"
    first = page.evaluate(f"({ends})('#lessons p').top")
    assert page.evaluate(f"({ends})('#lessons .close').bottom") <= first
    assert page.evaluate(f"({ends})('#play').bottom") < 844  # it says: press play
    page.click("#lessons .steps button:nth-child(7)")
    assert page.locator("#lessons").is_visible() and page.locator("#map canvas").is_visible()
    page.click("#lessons .steps button:nth-child(8)")
    assert page.locator("#lessons").is_visible() and not page.locator("#map").is_visible()


def test_a_recording_is_dropped_on_the_page(visit, run):
    from tokenflock.laboratory.recordings import recording

    told = recording(run) | {"words": [f"<i>w{k}</i>" for k in range(32)]}
    page = visit()
    drop = """(text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "run.json"));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    }"""
    page.evaluate(drop, json.dumps(told))
    page.wait_for_function("tokenflockLab.recording !== null")
    page.fill("#word", "w7")
    page.wait_for_function("tokenflockLab.held === 7")
    assert page.locator("i").count() == 0
    for bad in ("{", "[]", '{"format": "tokenflock recording", "n": 2, "d": 2, "count": 1}'):
        page.evaluate(drop, bad)
        page.wait_for_function(
            "document.getElementById('say').textContent.startsWith('Not opened')"
        )
    np.testing.assert_allclose(
        page.evaluate("[...tokenflockLab.shownFrame().x]"), run.x.values[0].reshape(-1), atol=1e-6
    )


def test_it_fits_a_phone(visit):
    page = visit(width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

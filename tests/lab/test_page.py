"""The page of the lab as a text: what is in it, and what can never be."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import Noisy, SelfAttention, Unnormalised
from tokenflock.laboratory import bounds, diagrams, page, recordings, specimens
from tokenflock.laboratory.ready import shipped_diagrams, shipped_model
from tokenflock.solvers import RK4
from tokenflock.starts import Cap, Uniform

SMALL = {"schema": {}, "programs": [], "theory": {}}


@pytest.fixture(scope="module")
def figure():
    """A live figure of one law."""
    return flock.lab(SelfAttention(beta=4.0), Uniform(n=16, d=2), embed=True, play=True)


def test_a_page_is_one_file_that_loads_nothing(figure, tmp_path):
    html = figure.save(tmp_path / "figure.html").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\s\"'<]+", html) == ["http://www.w3.org/2000/svg"]
    assert "connect-src 'none'" in html and "default-src 'none'" in html
    assert re.findall(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"(?!data:)", html) == []
    assert figure.save(tmp_path / "site").name == "index.html"


def test_a_live_figure_is_small(figure):
    assert len(figure.html.encode()) < 120_000


def test_a_figure_runs_the_flow_of_a_law_whose_force_grows_and_divides_its_steps(figure):
    made = flock.lab(Unnormalised(beta=8.0), Uniform(n=16, d=2), embed=True).html
    state = json.loads(re.search(r'id="data">(.*?)</script>', made)[1])["state"]
    assert (state["solver"], state["h"], state["chosen"]) == ("RK4", 0.1, "")
    assert "const Accuracy" in made and "const Accuracy" not in figure.html
    solver = RK4(h=0.1)
    made = flock.lab(Unnormalised(beta=8.0), Uniform(n=16, d=2), solver=solver, embed=True).html
    assert json.loads(re.search(r'id="data">(.*?)</script>', made)[1])["state"]["chosen"] == "step"


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(figure):
    frame = figure._repr_html_()
    assert frame.startswith("<iframe") and "allow-same-origin" not in frame
    assert unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == figure.html


def test_whatever_comes_from_outside_is_data():
    evil = "</script><script>alert(1)</script>"
    content = page.Content(
        SMALL, {"law": evil}, [{"title": evil}], [{"title": evil, "words": [evil]}], title=evil
    )
    assert evil not in page.page(content)


def test_scripts_write_no_markup():
    for name in (*page.SCRIPTS, "worker"):
        text = page._static(f"{name}.js")
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|outerHTML *=", text)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_scripts_are_javascript(tmp_path):
    whole = tmp_path / "whole.js"
    for text in (page._static("worker.js"), "\n".join(map(page._static, files()))):
        whole.write_text(text, encoding="utf-8")
        subprocess.run(["node", "--check", str(whole)], check=True)


def files() -> list[str]:
    return [f"{name}.js" for name in page.SCRIPTS]


@pytest.mark.parametrize(
    ("member", "name", "value"),
    [(Noisy(), "kappa", 0.0), (Cap(), "angle", 4.0), (Unnormalised(), "beta", 1000.0)],
    ids=str,
)
def test_bounds_are_where_the_library_refuses_and_in_its_words(member, name, value):
    edge = bounds.bounds(member, name)["low" if value <= 0 else "high"]
    said = bounds.refusal(lambda: type(member)(**{name: value}))
    assert said is not None
    assert edge["text"].replace("{got}", str(value)) == said
    inside = (edge["at"] + getattr(member, name)) / 2
    assert bounds.refusal(lambda: type(member)(**{name: inside})) is None


def test_every_law_has_a_specimen_in_some_dimension():
    for entry in entries("dynamics"):
        assert specimens.dimensions(entry), entry.name
        d = specimens.dimensions(entry)[0]
        assert len(list(specimens.variants(entry, d))) >= 1


def test_a_run_becomes_a_recording_with_the_numbers_of_the_library(run):
    told = recordings.recording(run)
    x = np.frombuffer(base64.b64decode(told["x"]), "<f4").reshape(told["count"], told["n"], 2)
    np.testing.assert_allclose(x, run.x.values, atol=1e-6)
    counts = np.frombuffer(base64.b64decode(told["seen"]["cluster_count"]), "<f4")
    wanted = flock.measure(run, flock.observables.ClusterCount()).cluster_count
    np.testing.assert_array_equal(counts, wanted)
    assert told["sphere"] and json.loads(json.dumps(told)) == told


def test_tokens_of_many_dimensions_come_on_their_principal_axes(run):
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))
    wide = np.pad(run.x.values, ((0, 0), (0, 0), (0, 7))) @ turn
    told = recordings.recording(xr.Dataset({"x": (("layer", "token", "coord"), wide[:5])}))
    assert told["d"] == 3 and told["axis"] == "layer"
    assert told["share"] == pytest.approx(1.0)


def test_a_diagram_becomes_a_map(run):
    result = flock.phase_diagram(
        SelfAttention(), Uniform(n=8, d=2), beta=[1.0, 4.0, 8.0], t=2, frames=5, repeats=4
    )
    told = diagrams.chart(result)
    assert len(told["values"]) == 15 and told["name"] == "pair density"
    assert told["state"] == {
        "law": "SelfAttention",
        "start": "Uniform",
        "solver": "Layer",
        "n": 8,
        "d": 2,
        "h": 0.1,
    }
    with pytest.raises(flock.UserError, match="phase diagram"):
        diagrams.chart(run)


def test_the_shipped_diagrams_agree_with_the_law_at_their_edges():
    """At t = 0 random tokens on the circle have met with probability arccos(1 - delta) / pi; at
    small beta all have met at the end.
    """
    for chart in shipped_diagrams():
        table = np.array(chart["values"]).reshape(len(chart["beta"]), len(chart["time"]))
        assert table[0, -1] > 0.95
        if chart["state"]["d"] == 2:
            assert table[:, 0].mean() == pytest.approx(np.arccos(1 - 1e-3) / np.pi, rel=0.02)


def test_the_model_of_the_last_lesson_does_what_the_lesson_says():
    told = shipped_model()
    cosine, clusters = (
        np.frombuffer(base64.b64decode(told["seen"][name]), "<f4")
        for name in ("mean_cosine", "cluster_count")
    )
    assert len("".join(told["words"])) == told["n"] == clusters[0]
    assert cosine[0] < cosine[3] < cosine[-1] < 0.7 and clusters[-1] > 0.8 * told["n"]
    assert abs(cosine[-1] - cosine[told["count"] // 2]) < 0.05


def test_a_figure_has_the_panels_that_were_asked_for_and_no_others():
    start = Uniform(n=8, d=2)
    made = flock.lab(SelfAttention(), start, embed=True, panels=["energy"], rate=60, t=5).html
    told = json.loads(re.search(r'id="data">(.*?)</script>', made)[1])
    assert told["panels"] == ["energy"] and 'class="figure panels"' in made
    assert told["state"]["rate"] == 60 and told["state"]["until"] == 5
    for options, word in (
        ({"panels": ["speed"]}, "panels"),
        ({"panels": ["energy"], "embed": False}, "panels"),
        ({"rate": 0}, "rate"),
        ({"t": -1.0}, "t must"),
    ):
        with pytest.raises(flock.UserError, match=word):
            flock.lab(SelfAttention(), start, **{"embed": True} | options)


def test_what_is_no_subject_is_refused():
    with pytest.raises(flock.UserError, match="subject must be a law"):
        flock.lab("self-attention")
    with pytest.raises(flock.UserError, match="or a list of them"):
        flock.lab([1, 2])


def test_the_command_writes_a_figure_and_a_recording(run, tmp_path, capsys):
    from tokenflock.cli import main

    out = tmp_path / "figure.html"
    words = ["lab", "--embed", "--dynamics", "causal", "--beta", "4", "--no-open"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", str(out)])
    assert ended.value.code == 0 and out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    flock.save(run, tmp_path / "run.nc")
    with pytest.raises(SystemExit) as ended:
        main(["lab", str(tmp_path / "run.nc"), "--out", str(tmp_path / "run.json")])
    assert ended.value.code == 0
    assert json.loads((tmp_path / "run.json").read_text())["format"] == "tokenflock recording"
    with pytest.raises(SystemExit) as ended:
        main(["lab", "--out", str(tmp_path / "lab.pdf")])
    assert ended.value.code == 2
    assert "must be an .html or .json file" in capsys.readouterr().err

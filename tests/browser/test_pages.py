"""Reports in a real browser: on a desk, a tablet and a phone, by day and by night."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

from tests.papers.numbers import stored
from tokenflock.pages import probe
from tokenflock.pages.paper import page
from tokenflock.reproduction.folder import Folder
from tokenflock.reproduction.item import find
from tokenflock.reproduction.outcome import Outcome

pytestmark = pytest.mark.browser
WIDTHS = (1400, 800, 390)
OUTSIDE = """() => {
  const wide = document.documentElement.clientWidth;
  const inside = "table.cases, pre, .command, .scroll";
  return [...document.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect(), parent = element.parentElement;
    return box.width && (box.right > wide + 1 || box.left < -1) && !parent.closest(inside);
  }).map(element => element.outerHTML.slice(0, 120)).slice(0, 5);
}"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of a paper, with all its claims and one picture, and a report of a probed model."""
    folder = tmp_path_factory.mktemp("reports")
    outcomes = []
    for item in find(["perspective"]):
        home, data = item.load(), stored(item.name)
        claims = tuple(replace(c, id=f"{item.name}/{c.id}") for c in home.claims(data))
        if item.stem == "fig1":
            claims = tuple(replace(claim, measured=None) for claim in claims)
        drawn = item.stem == "fig6"
        figures = Folder(folder)._figures(item, home, home.compute(None)) if drawn else ()
        problem = "not run: needs a model" if item.stem == "fig1" else ""
        outcomes.append(
            Outcome(
                item, "quick", claims, 1.0, "cpu", "n = 2", figures, data="d.nc", problem=problem
            )
        )
    (folder / "paper.html").write_text(page(outcomes, folder), encoding="utf-8")
    probe.write([probed("albert"), probed("gpt2")], folder / "probe.html")
    return folder


def probed(name: str) -> xr.Dataset:
    """What a survey of a model with seven layers might have measured."""
    rng = np.random.default_rng(len(name))
    dims, bins = ("prompt", "layer"), np.linspace(-0.95, 0.95, 20)
    names = ("mean_cosine", "pair_density", "cluster_count", "effective_rank")
    values = {key: (dims, rng.uniform(0.1, 0.9, (3, 7))) for key in names}
    values["histogram"] = ((*dims, "bin"), rng.dirichlet(np.ones(20), (3, 7)))
    values["w"] = (("prompt", "token"), np.full((3, 9), 1 / 9))
    recipe = {"special": True, "architecture": "albert", "d": 64, "heads": 4, "depth": 6}
    attrs = {"model": name, "recipe": json.dumps(recipe)}
    return xr.Dataset(values, coords={"layer": np.arange(7), "bin": bins}, attrs=attrs)


@pytest.fixture
def opened(browser, reports):
    """Open a report; nothing may be asked from a host, and nothing complained of."""
    asked, heard, contexts = [], [], []

    def go(name: str, width: int, theme: str):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        contexts.append(context)
        shown = context.new_page()
        shown.on("request", lambda request: asked.append(request.url))
        shown.on("console", lambda told: heard.append(told.text) if told.type == "error" else None)
        shown.goto((reports / f"{name}.html").as_uri())
        return shown

    yield go
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert heard == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["paper", "probe"])
def test_nothing_overflows_and_nothing_is_loaded_from_elsewhere(opened, name, width, theme):
    shown = opened(name, width, theme)
    assert shown.evaluate(OUTSIDE) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["paper", "probe"])
def test_headings_are_in_order_and_every_picture_says_what_it_shows(opened, name):
    shown = opened(name, 800, "light")
    levels = shown.eval_on_selector_all("h1, h2, h3", "all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    words = shown.eval_on_selector_all("img", "all => all.map(one => one.alt)")
    assert words and all(len(alt.split()) > 4 for alt in words)


def test_a_dark_screen_has_dark_figures(opened):
    chosen = "document.querySelector('figure img').currentSrc"
    light, dark = (opened("paper", 800, theme).evaluate(chosen) for theme in ("light", "dark"))
    assert light.startswith("data:image/png") and dark.startswith("data:image/png")
    assert light != dark


def test_on_a_phone_a_claim_is_a_card_and_on_a_desk_a_row(opened):
    display = "getComputedStyle(document.querySelector('table.claims > tbody > tr')).display"
    assert opened("paper", 1400, "light").evaluate(display) == "table-row"
    assert opened("paper", 390, "light").evaluate(display) == "block"


def test_what_was_not_run_stands_last_and_no_failure_is_not_red(opened):
    shown = opened("paper", 1400, "light")
    items = shown.eval_on_selector_all("h2[id^=perspective]", "all => all.map(one => one.id)")
    assert items[-1] == "perspective-fig1"
    assert shown.eval_on_selector_all(".totals .fails", "all => all.length") == 0
    assert "0 claims fail" in shown.inner_text(".totals .none")

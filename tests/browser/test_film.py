"""A film as a page plays in a real browser, without a network."""

from __future__ import annotations

import pytest

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import SelfAttention
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("d", [2, 3])
def test_a_page_plays_pauses_and_is_scrubbed(browser, tmp_path, d):
    run = flock.simulate(
        SelfAttention(beta=4.0), Uniform(n=8, d=d), t=5, frames=21, solver=RK4(h=0.125), seed=0
    )
    path = plots.film(run, tmp_path / "run.html", fps=10, landscape=d == 3)
    page = browser.new_page(viewport={"width": 390, "height": 700})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("Number(document.body.dataset.picture) > 0")  # it plays by itself
    page.get_by_role("button", name="Pause").click()
    stopped = page.evaluate("document.body.dataset.picture")
    page.wait_for_timeout(300)
    assert page.evaluate("document.body.dataset.picture") == stopped
    pictures = []
    for picture in (0, 20):
        page.get_by_role("slider").fill(str(picture))
        assert page.evaluate("document.body.dataset.picture") == str(picture)
        pictures.append(page.evaluate("document.querySelector('canvas').toDataURL()"))
    assert pictures[0] != pictures[1] and not errors
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    page.close()

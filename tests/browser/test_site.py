"""The built documentation in a real browser: nothing from another host, formulas and pictures show,
on a desk and on a phone.
"""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
PROJECT = Path(__file__).parents[2]
SITE = Path(os.environ.get("TOKENFLOCK_SITE", PROJECT / "build" / "docs"))
WIDTHS = {"desk": 1400, "phone": 390}
KEPT = ("file:", "data:", "blob:", "about:")
MAIN = (
    "index.html",
    "everything.html",
    "gallery.html",
    "glossary.html",
    "catalogue.html",
    "sharp-bits.html",
    "errata.html",
    "lessons/index.html",
    "verdicts/index.html",
    "verdicts/perspective.html",
    "reference/dynamics.html",
    "howto/own-law.html",
    "architecture/index.html",
)
BROKEN = """[...document.images].filter((image) => !(image.complete && image.naturalWidth > 0))
    .map((image) => image.src)"""
FLAT = """[...document.querySelectorAll('math')].filter((formula) => {
    const box = formula.getBoundingClientRect();
    return formula.checkVisibility() && !(box.width > 2 && box.height > 4); }).length"""


@pytest.fixture(scope="session")
def site() -> Path:
    if not (SITE / "index.html").exists():
        pytest.skip(f"{SITE} is not built: python tools/docs")
    return SITE


def pages(site: Path) -> list[str]:
    lessons = [f"lessons/{path.name}" for path in sorted((site / "lessons").glob("[0-9]*.html"))]
    return [*MAIN, *lessons, *(["questions.html"] if (site / "questions.html").exists() else [])]


@pytest.fixture
def reader(browser, site):
    """Open a page at a width, in a scheme; in the end nothing was asked of another host."""
    heard, asked, contexts = [], [], []

    def read(page: str, width: int, scheme: str = "light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda told: heard.append(told.text) if told.type == "error" else None)
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((site / page).as_uri())
        tab.evaluate("document.querySelectorAll('img').forEach((image) => image.loading = 'eager')")
        tab.wait_for_load_state("load")
        return tab

    yield read
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(KEPT)] == []
    assert heard == []


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_pages_show_their_pictures_and_formulas_and_fit(reader, site, width):
    for page in pages(site):
        tab = reader(page, width)
        assert tab.evaluate(BROKEN) == [], page
        assert tab.evaluate(FLAT) == 0, page
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{page} is too wide"
        tab.close()


def test_formulas_are_there(reader):
    assert reader("index.html", 1400).locator("math").count() >= 3
    assert reader("glossary.html", 390).locator("math").count() > 30


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_the_ground(reader, scheme):
    tab = reader("everything.html", 1400, scheme)
    ink, ground = (
        tab.evaluate(
            f"getComputedStyle(document.querySelector('{place}')).{name}.match(/[\\d.]+/g).map(Number)"
        )
        for place, name in (("article p", "color"), ("body", "backgroundColor"))
    )
    assert abs(sum(ink[:3]) - sum(ground[:3])) > 350


def test_a_live_figure_runs_and_beta_can_be_dragged(reader):
    tab = reader("gallery.html", 1400)
    frame = tab.locator("iframe.live").first
    frame.scroll_into_view_if_needed()
    inside = frame.content_frame
    slider = inside.locator('.row:has([data-field="beta"]) input.slide')
    slider.wait_for(state="visible", timeout=15_000)
    page = next(each for each in tab.frames if "_static/live/" in each.url)
    page.wait_for_function("tokenflockLab.history.length > 5", timeout=15_000)
    before = page.evaluate("tokenflockLab.beta()")
    slider.fill("100")
    assert page.evaluate("tokenflockLab.beta()") != before


def test_answers_are_folded_until_they_are_asked_for(reader, site):
    lessons = [page for page in pages(site) if page.startswith("lessons/") and "index" not in page]
    if not lessons:
        pytest.skip("no lessons are built")
    tab = reader(lessons[0], 390)
    answer = tab.locator("details.answer").first
    assert answer.get_attribute("open") is None
    answer.locator("summary").click()
    assert answer.get_attribute("open") is not None


def test_every_link_of_the_site_leads_to_a_page_and_a_place(site):
    """Also to anchors: read from the files, every page."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    for path, text in texts.items():
        for to in re.findall(r'<a [^>]*href="([^"]+)"', text):
            if re.match(r"[a-z]+:", to):
                continue
            file, _, part = unescape(to).partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.exists(), f"{path.relative_to(site)} links to {to}"
            if part and target in places:
                assert part in places[target], f"{path.relative_to(site)} links to {to}"

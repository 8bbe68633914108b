"""A real browser, where there is one: Debian's Chromium through playwright."""

from __future__ import annotations

import shutil

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'tokenflock[browser]'"
    )
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium: apt install chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The page of the whole catalogue, as a file."""
    import tokenflock as flock

    return flock.lab(play=False).save(tmp_path_factory.mktemp("lab") / "lab.html")


@pytest.fixture
def visit(browser, written):
    """Open the page with a fragment; at the end nothing was complained of or asked from a host."""
    heard, asked, contexts = [], [], []

    def go(fragment: str = "", path=None, width: int = 1400):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: heard.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((path or written).as_uri() + fragment)
        page.wait_for_function("window.tokenflockLab && tokenflockLab.history.length > 0")
        return page

    yield go
    for context in contexts:
        context.close()
    assert heard == []
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []

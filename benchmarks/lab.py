"""How fast the lab is, in Chromium: steps and frames a second, size, and time to the first frame.

    python benchmarks/lab.py

Needs playwright and Chromium (pip install 'tokenflock[browser]'; apt install chromium).
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
CASES = {
    "self-attention, n = 1,000, d = 3": {"law": "SelfAttention", "n": 1000, "d": 3},
    "fast sums on the circle, n = 20,000": {"law": "Fast", "n": 20000, "d": 2},
}
WARMING, SECONDS = 2.0, 6.0


def fragment(state: dict) -> str:
    """The link of a state."""
    text = json.dumps({**state, "rate": 1000, "values": {"beta": 4.0, "base.beta": 4.0}})
    return "#" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def opened(browser: Browser, path: Path, link: str = "") -> tuple[Page, float]:
    """The page with its first frame, and the seconds that this took."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    began = time.perf_counter()
    page.goto(path.as_uri() + link)
    page.wait_for_function("window.tokenflockLab && tokenflockLab.frames > 0")
    return page, time.perf_counter() - began


def rates(page: Page) -> tuple[float, float]:
    """Steps and drawn frames a second while it plays; it plays as soon as it is seen."""
    page.wait_for_function("tokenflockLab.playing", timeout=5000)
    page.wait_for_timeout(1000 * WARMING)
    read = "[tokenflockLab.history.last().index, tokenflockLab.frames, performance.now()]"
    before = page.evaluate(read)
    page.wait_for_timeout(1000 * SECONDS)
    after = page.evaluate(read)
    seconds = (after[2] - before[2]) / 1000
    steps, frames = (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds
    said = page.locator("#say").text_content()
    if said or not page.evaluate("tokenflockLab.playing") or steps <= 0 or frames <= 0:
        sys.exit(
            f"nothing moves: {steps:.1f} steps/s, {frames:.1f} frames/s, the page says {said!r}"
        )
    return steps, frames


def asked(page: Page, state: dict) -> None:
    """End where the page runs something else than what is measured."""
    names = list(state)
    told = page.evaluate(f"{json.dumps(names)}.map((name) => tokenflockLab.state[name])")
    if told != [state[name] for name in names]:
        sys.exit(f"the page runs {dict(zip(names, told))}, not {state}")


def main() -> None:
    """Print all numbers."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "lab.html"
        command = [sys.executable, "-m", "tokenflock", "lab", "--no-open", "--out", str(path)]
        subprocess.run(command, check=True, capture_output=True)  # fills the cache
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        writing = time.perf_counter() - began
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page, opening = opened(browser, path)
        page.close()
        print(f"page of the whole catalogue: {path.stat().st_size / 1e6:.2f} MB")
        print(f"from command to first frame: {writing:.1f} s + {opening:.2f} s")
        for name, state in CASES.items():
            page, _ = opened(browser, path, fragment(state))
            asked(page, state)
            steps, frames = rates(page)
            print(f"{name}: {steps:.0f} steps/s beside {frames:.0f} frames/s")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

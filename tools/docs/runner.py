"""Run the code cells of one page, as a notebook would, in a process of their own.

    python tools/docs/runner.py cells.json FOLDER NAME

writes FOLDER/outputs.json: for each cell what it printed, its pictures, its live figures.
"""

from __future__ import annotations

import ast
import io
import json
import shutil
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
DPI = 170
FILMS = (".mp4", ".gif", ".png")
# A live figure in a page: the numbers of its law can be dragged, and it is light or dark as the
# page around it is.
LIVE_STYLE = """
body.figure main { display: flex; flex-direction: column; height: 100vh; gap: .2rem; }
body.figure #middle { flex: 1; display: flex; flex-direction: column; min-height: 0; order: 0; }
body.figure #scene { flex: 1; min-height: 0; }
body.figure #stage { height: 100%; }
body.figure #controls { display: block; max-height: none; overflow: visible; padding: 0; }
body.figure #controls fieldset { border: 0; margin: 0; padding: 0; background: none; }
body.figure #controls legend, body.figure #controls .row, body.figure #controls .doc,
body.figure #controls pre, body.figure #controls button { display: none; }
body.figure #controls .row:has(@fields@) { display: grid; grid-template-columns: 2.5rem 1fr 5rem;
  gap: .6rem; margin: .2rem .3rem .1rem; align-items: center; }
body.figure .row:has(@fields@) .slide { grid-column: 2; grid-row: 1; margin: 0; }
body.figure .row:has(@fields@) input[type="text"] { grid-column: 3; grid-row: 1; }
body.figure .row:has(@fields@) .doc { display: none; }
"""
LIVE_SCRIPT = """<script>
addEventListener("message", (event) => {
  if (event.data && ["light", "dark"].includes(event.data.tokenflockTheme)) {
    document.documentElement.dataset.theme = event.data.tokenflockTheme;
    if (window.tokenflockLab) tokenflockLab.dirty = true;
  }
});
</script>
"""


def run(sources: list[str], folder: Path, name: str) -> list[dict[str, Any]]:
    """What each cell shows."""
    import __main__

    scope = vars(__main__)
    shown = Shown(folder, name)
    return [_cell(source, k, scope, shown) for k, source in enumerate(sources, 1)]


def _cell(source: str, number: int, scope: dict[str, Any], shown: Shown) -> dict[str, Any]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    where, printed, value = f"<cell {number}>", io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, where, "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), scope)
    return shown.of(value) | {"printed": printed.getvalue()}


class Shown:
    """Writes what cells show, with numbers that count up."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.count = folder, name, 0

    def of(self, value: Any) -> dict[str, Any]:
        """Pictures and live figures of the last value, open figures of pyplot, or its repr."""
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure

        told: dict[str, Any] = {"pictures": [], "live": [], "value": ""}
        parts = list(value) if isinstance(value, (list, tuple)) else [value]
        for part in parts:
            if isinstance(part, Axes):
                part = part.get_figure(root=True)
            if isinstance(part, Figure):
                told["pictures"].append(self._picture(part))
                self._close(part)
            elif hasattr(part, "html") and hasattr(part, "save"):
                told["live"].append(self._live(part.html))
            elif isinstance(part, Path) and part.suffix in FILMS:
                told["pictures"].append(self._copied(part))
            elif value is not None:
                told["value"] = repr(value)
        told["pictures"] += self._open()
        return told

    @staticmethod
    def _close(figure: Any) -> None:
        """No second picture of what has one."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(figure)

    def _open(self) -> list[str]:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return []
        made = [self._picture(pyplot.figure(number)) for number in pyplot.get_fignums()]
        pyplot.close("all")
        return made

    def _next(self, suffix: str) -> Path:
        self.count += 1
        return self.folder / f"{self.name}-{self.count}{suffix}"

    def _picture(self, figure: Any) -> str:
        path = self._next(".png")
        figure.savefig(path, dpi=DPI, bbox_inches="tight", pad_inches=0.08)
        return path.name

    def _copied(self, path: Path) -> str:
        return Path(shutil.copy(path, self._next(path.suffix))).name

    def _live(self, html: str) -> str:
        path = self._next(".html")
        path.write_text(live_page(html), encoding="utf-8")
        return path.name


def live_page(html: str, fields: tuple[str, ...] = ("beta", "base.beta", "kappa")) -> str:
    """A small page of the lab with sliders for the letters that its law has."""
    places = ", ".join(f'[data-field="{name}"]' for name in fields)
    style = LIVE_STYLE.replace("@fields@", places)
    html = html.replace("</style>", style + "</style>", 1)
    return html.replace("</body>", LIVE_SCRIPT + "</body>", 1)


def main(arguments: list[str]) -> None:
    """Read cells, run them, write what they show."""
    cells, folder, name = Path(arguments[0]), Path(arguments[1]), arguments[2]
    began = time.process_time()
    shown = run(json.loads(cells.read_text(encoding="utf-8")), folder, name)
    told = {"cells": shown, "seconds": time.process_time() - began}
    (folder / "outputs.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

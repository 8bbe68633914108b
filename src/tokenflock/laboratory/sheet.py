"""A page as it leaves the library: saved, opened, or shown in a notebook."""

from __future__ import annotations

import os
import webbrowser
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tokenflock.files import made_folder, replaceable, whole

HEIGHT = {False: 860, True: 480}  # of a page in a notebook, in pixels


@dataclass(frozen=True)
class Lab:
    """A page of the lab. A notebook shows it; `save` writes it, `open` shows it in a browser."""

    html: str
    figure: bool = False

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to an .html file, or into a folder, as index.html, for a static host."""
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            path = made_folder(path) / "index.html"
        replaceable(path, ".html")
        with whole(path) as part:
            part.write_text(self.html, encoding="utf-8")
        return path

    def open(self, path: str | os.PathLike[str] = "lab.html") -> Path:
        """Write the page and show it in the browser."""
        written = self.save(path)
        webbrowser.open(written.resolve().as_uri())
        return written

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as a notebook shows it."""
        source = escape(self.html, quote=True)
        return (
            f'<iframe title="tokenflock lab" style="width:100%;height:{HEIGHT[self.figure]}px;'
            f'border:0" sandbox="allow-scripts allow-downloads" srcdoc="{source}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Lab({len(self.html) / 1000:.0f} kB)"

"""Pages for a browser: one file each, with everything inside."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from tokenflock.reproduction.mathematics import mathml

RESOLUTION = 220  # dots per inch of saved figures
REMS = 7.5  # of the page for an inch in print
STYLE = Path(__file__).with_name("page.css")


def page(title: str, body: str) -> str:
    """A whole page."""
    style = STYLE.read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="tokenflock">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def picture(path: Path, alt: str, dark: Path | None = None) -> str:
    """A PNG file as part of a page, about as wide as it is in print; another one for dark screens
    where there is one.
    """
    label, (wide, high) = escape(alt, quote=True), _pixels(path)
    image = (
        f'<img alt="{label}" width="{wide}" height="{high}" loading="lazy"'
        f' style="width: {wide / RESOLUTION * REMS:.1f}rem"'
        f' src="data:image/png;base64,{_text(path)}">'
    )
    if dark is None:
        return image
    source = f"data:image/png;base64,{_text(dark)}"
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{source}">{image}</picture>'
    )


def film(path: Path, caption: str) -> str:
    """An mp4 film as part of a page."""
    source, label = f"data:video/mp4;base64,{_text(path)}", escape(caption, quote=True)
    return (
        f'<video controls loop muted playsinline preload="metadata" aria-label="{label}"'
        f' src="{source}"></video>'
    )


def paragraphs(text: str) -> str:
    """Marked text with blank lines as paragraphs; an indented block keeps its lines.

    >>> paragraphs("See\\n\\n    $x$")
    "<p>See</p>\\n<p class='equations'><math><mi>x</mi></math></p>"
    """
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return "\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    lines = block.splitlines()
    if not all(line.startswith("    ") for line in lines):
        return f"<p>{mathml(block)}</p>"
    if "$" in block:
        return f"<p class='equations'>{'<br>'.join(mathml(line.strip()) for line in lines)}</p>"
    return f"<pre>{escape(block)}</pre>"


def _pixels(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file, which its header says."""
    head = path.read_bytes()[16:24]
    return int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

"""Pages for a browser: one file each, with everything inside."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

from tokenflock.reproduction.mathematics import GREEK, mathml

RESOLUTION = 220  # dots per inch of saved figures
REMS = 7.5  # of the page for an inch in print
_SUB = re.compile(
    r"((?<![A-Za-z])(?:[A-Za-z]|min|max|sup|sum)|[^\x00-\x7f])"
    r"_(?:\{([^{}]*)\}|([0-9A-Za-z]+|[α-ω*]))"
)
_SUP = re.compile(
    r"\^(?:\{([^{}]*)\}|\(((?:[^()]|\([^()]*\))*)\)|([-−]?(?:[0-9]+(?:\.[0-9]+)?|[A-Za-zα-ω])))"
)
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)")
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
    """Plain text with blank lines as paragraphs; an indented block keeps its lines."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return "\n".join(_block(block) for block in blocks)


def greek(text: str) -> str:
    """Letters and signs that plain text spells out.

    >>> greek("beta = 4, |tau| <= 3.2, cos theta_1")
    'β = 4, |τ| ≤ 3.2, cos θ_1'
    """
    text = _SCIENTIFIC.sub(_power, text.replace("<=", "≤").replace(">=", "≥"))
    return re.sub(rf"(?<![A-Za-z])({'|'.join(GREEK)})(?![A-Za-z])", lambda at: GREEK[at[0]], text)


def formulas(text: str) -> str:
    """Plain text for a page: Greek letters, what stands below after _, and above after ^.

    >>> formulas("E_beta of x_i < e^{-2e^beta t}, as pair_density says")
    'E<sub>β</sub> of x<sub>i</sub> &lt; e<sup>-2e<sup>β</sup> t</sup>, as pair_density says'
    >>> formulas("10^14.7 and 1e-12")
    '10<sup>14.7</sup> and 10<sup>−12</sup>'
    """
    html, before = escape(greek(text)), ""
    while html != before:  # from the outside in
        before = html
        html = _SUB.sub(lambda m: f"{m[1]}<sub>{m[2] or m[3]}</sub>", html)
        html = _SUP.sub(lambda m: f"<sup>{m[1] or m[2] or m[3]}</sup>", html)
    return html


def prose(text: str) -> str:
    """Marked text as `mathml` sets it; plain text as `formulas` does.

    >>> prose("at $β_1$"), prose("beta_1 = 4")
    ('at <math><msub><mi>β</mi><mn>1</mn></msub></math>', 'β<sub>1</sub> = 4')
    """
    return mathml(text) if "$" in text else formulas(text)


def _power(found: re.Match[str]) -> str:
    """A number of plain text with its power of ten."""
    digits = "" if float(found[1]) == 1 else f"{found[1]}·"
    return f"{digits}10^{{{int(found[2])}}}".replace("-", "−")


def _block(block: str) -> str:
    kept = all(line.startswith("    ") for line in block.splitlines())
    return f"<pre>{escape(block)}</pre>" if kept else f"<p>{prose(block)}</p>"


def _pixels(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file, which its header says."""
    head = path.read_bytes()[16:24]
    return int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

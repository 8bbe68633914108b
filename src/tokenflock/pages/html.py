"""Pages for a browser: one file each, with everything inside."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

RESOLUTION = 220  # dots per inch of saved figures
REMS = 7.5  # of the page for an inch in print
_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "psi": "ψ",
    "Gamma": "Γ",
}
_SUB = re.compile(
    r"((?<![A-Za-z])(?:[A-Za-z]|min|max|sup|sum)|[^\x00-\x7f])"
    r"_(?:\{([^{}]*)\}|([0-9A-Za-z]+|[α-ω*]))"
)
_SUP = re.compile(r"\^(?:\{([^{}]*)\}|\(((?:[^()]|\([^()]*\))*)\)|([-−]?(?:[0-9]+|[A-Za-zα-ω])))")
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


def picture(path: Path, caption: str) -> str:
    """A PNG file as part of a page, about as wide as it is in print."""
    label, width = escape(caption, quote=True), _pixels(path) / RESOLUTION * REMS
    return (
        f'<img alt="{label}" style="width: {width:.1f}rem"'
        f' src="data:image/png;base64,{_text(path)}">'
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
    text = text.replace("<=", "≤").replace(">=", "≥")
    return re.sub(
        rf"(?<![A-Za-z])({'|'.join(_LETTERS)})(?![A-Za-z])", lambda at: _LETTERS[at[0]], text
    )


def formulas(text: str) -> str:
    """Plain text for a page: Greek letters, what stands below after _, and above after ^.

    >>> formulas("E_beta of x_i < e^{-2e^beta t}, as pair_density says")
    'E<sub>β</sub> of x<sub>i</sub> &lt; e<sup>-2e<sup>β</sup> t</sup>, as pair_density says'
    """
    html, before = escape(greek(text)), ""
    while html != before:  # from the outside in
        before = html
        html = _SUB.sub(lambda m: f"{m[1]}<sub>{m[2] or m[3]}</sub>", html)
        html = _SUP.sub(lambda m: f"<sup>{m[1] or m[2] or m[3]}</sup>", html)
    return html


def _block(block: str) -> str:
    kept = all(line.startswith("    ") for line in block.splitlines())
    return f"<pre>{escape(block)}</pre>" if kept else f"<p>{formulas(block)}</p>"


def _pixels(path: Path) -> int:
    """The width of a PNG file, which its header says."""
    return int.from_bytes(path.read_bytes()[16:20], "big")


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

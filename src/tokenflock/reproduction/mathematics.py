"""Mathematics in the texts of claims, notes, captions and errata: written once, set three ways.

What stands between dollars is a formula in the linear notation of plain text: `$β_* ≥ e^(−2t)/√n$`.
`mathml` sets it for a page, `unicode` for a terminal, `plain` leaves it as it was typed.

    letters     x β Γ are italic; cos, log, diag and words of three letters or more upright
    below       x_i  λ_max  I_(d/2+1)  or  I_{d/2+1}; parentheses that only group are not shown
    above       e^β  10^14.7  e^(−2t); also as they are: n⁻² x₁ ẋ τ*
    roots       √n  √(1 + 4β²)
    numbers     1e-09 is set as a power of ten, 3.2e+03 as 3200
    commands    those of TeX that stand for one sign: \\beta \\le \\langle \\cdot
    signs       <= >= != -> - and ... are set as ≤ ≥ ≠ → − …

Outside, `names of code` stand between backticks, and two dollars are a dollar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from tokenflock.reproduction.formula_elements import elements
from tokenflock.reproduction.formula_lines import line

_PIECE = re.compile(r"\$\$|\$([^$]+)\$|`([^`]+)`")
_MOST = 1000  # characters of a formula; what is longer is none
_SHORT = 40  # characters of a formula that fits into one line of a terminal


def mathml(text: str) -> str:
    """For a page: everything escaped, formulas as MathML, which browsers set without any script.

    >>> mathml("at $β_1$ < 4")
    'at <math><msub><mi>β</mi><mn>1</mn></msub></math> &lt; 4'
    """
    return _rendered(text, escape, elements, lambda code: f"<code>{escape(code)}</code>")


def unicode(text: str, space: str = " ") -> str:
    """For a terminal: one line of Unicode. `space` stands for the spaces of a short formula, so
    that who breaks lines may keep it whole.

    >>> unicode("$e^(-2t)$ is 1e-9, that is $1e-9$, at $x_1$; $10^14.7$ is no power of `ten`")
    'e⁻²ᵗ is 1e-9, that is 10⁻⁹, at x₁; 10^14.7 is no power of ten'
    """

    def formula(typed: str) -> str:
        done = line(typed)
        return done.replace(" ", space) if len(done) <= _SHORT else done

    return _rendered(text, str, formula, str)


def plain(text: str) -> str:
    """As it was typed, without the marks.

    >>> plain("$e^(-2t)$ costs 3 $$")
    'e^(-2t) costs 3 $'
    """
    return _rendered(text, str, str, str)


def _rendered(
    text: str,
    words: Callable[[str], str],
    formula: Callable[[str], str],
    code: Callable[[str], str],
) -> str:
    parts, at = [], 0
    for piece in _PIECE.finditer(text):
        parts.append(words(text[at : piece.start()]))
        if piece[1] is not None:
            parts.append((formula if len(piece[1]) < _MOST else words)(piece[1]))
        else:
            parts.append("$" if piece[2] is None else code(piece[2]))
        at = piece.end()
    return "".join(parts) + words(text[at:])

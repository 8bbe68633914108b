"""Numbers of claims as formulas: as many digits as an error allows, powers of ten where they help.

What is returned is marked as in `tokenflock.reproduction.mathematics`, which sets it.
"""

from __future__ import annotations

import math

from tokenflock.reproduction.claim import Claim


def measured(claim: Claim) -> str:
    """The number, with as many digits as its error allows or its interval has a use for.

    >>> measured(Claim("front", "", "", 6.7812345, (6.70, 6.86)))
    '$6.781$'
    >>> measured(Claim("front", "", "", 4.85183382, (4.8, 4.9), error=9.9e-7))
    '$4.851834 ± 0.000001$'
    """
    if claim.measured is None:
        return "–"
    if not math.isfinite(claim.measured):
        return "no number"
    if claim.error and math.isfinite(claim.error):
        return f"${with_error(claim.measured, claim.error, brief=True)}$"
    return f"${number(claim.measured, _width(claim))}$"


def interval(claim: Claim) -> str:
    """Where the number must lie.

    >>> low, inside = (-math.inf, 1e-9), (6.70, 6.86)
    >>> interval(Claim("", "", "", 0.0, low)), interval(Claim("", "", "", 0.0, inside))
    ('$≤ 1e-09$', '$6.78 ± 0.08$')
    >>> interval(Claim("", "", "", 0.0, (0.12, 0.88)))
    '$0.12$ to $0.88$'
    """
    low, high = claim.interval
    if math.isnan(low) or math.isnan(high):
        return "no number"
    if math.isinf(low) or math.isinf(high):
        return f"$≤ {_short(high)}$" if math.isinf(low) else f"$≥ {_short(low)}$"
    if low == high:
        return f"$= {low:.6g}$"
    middle, half = (low + high) / 2, (high - low) / 2
    if half < 0.2 * abs(middle):
        return f"${with_error(middle, half)}$"
    if math.isclose(low, -high):
        return f"$0 ± {_short(half)}$"
    return f"${number(low, high - low)}$ to ${number(high, high - low)}$"


def with_error(value: float, error: float, brief: bool = False) -> str:
    """A number and its error, whose digits end at the same place.

    >>> with_error(1.04719755, 1e-9), with_error(3.2e-9, 4e-10), with_error(51234.5, 130.0)
    ('1.047197550 ± 1e-09', '(3.2 ± 0.4)·1e-09', '51230 ± 130')

    Args:
      value: the number.
      error: greater than zero.
      brief: one digit of the error, two where the first is 1; else two where there are two.
    """
    size = math.floor(math.log10(abs(value))) if value else math.floor(math.log10(error))
    size = max(size, math.floor(math.log10(error)))
    if not -4 <= size < 7:
        scale = 10.0**size
        return f"({with_error(value / scale, error / scale, brief)})·1e{size:+03d}"
    digits = f"{error:.1e}".split("e")[0]
    two = (digits[0] == "1") if brief else (digits[-1] != "0")
    error = float(f"{error:.{int(two)}e}")
    places = int(two) - math.floor(math.log10(error) + 1e-9)
    shown = f"{error:.{max(places, 0)}f}" if places <= 6 else f"{error:.{int(two)}e}"
    return f"{round(value, places):.{max(places, 0)}f} ± {shown}"


def number(value: float, width: float) -> str:
    """A number to a tenth or a hundredth of a width.

    >>> number(0.61803, 0.01), number(1.234e-13, 1e-12), number(123456789.0, 1e7)
    ('0.618', '1.2e-13', '1.23e+08')
    """
    if not math.isfinite(value):
        return "no number"
    if value == 0:
        return "0"
    places = 1 - math.floor(math.log10(width)) if width > 0 else 6
    size = math.floor(math.log10(abs(value)))
    if -4 < size < 6:
        return f"{value:.{min(max(places, 0), 12)}f}" if places + size >= 2 else f"{value:.3g}"
    return f"{value:.{min(max(places + size, 1), 12)}e}"


def _short(value: float) -> str:
    return f"{value:.4g}"


def _width(claim: Claim) -> float:
    low, high = claim.interval
    widths = [(high - low) / 2, abs(claim.measured or 0.0), 1.0]
    return next((width for width in widths if width and math.isfinite(width)), 1.0)

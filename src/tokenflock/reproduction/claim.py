"""A claim: a sentence, its source, a measured number, and the interval in which it must lie."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tokenflock.errors import require
from tokenflock.reproduction.mathematics import plain as plain_text

Interval = tuple[float, float]

HOLDS, FAILS, NOT_RUN = "holds", "fails", "not run"
MARKED = ("statement", "source", "note", "erratum")  # texts with formulas between dollars


class NotRun(Exception):
    """An item that cannot run here. The message says what it needs."""


@dataclass(frozen=True)
class Claim:
    """What is said, what was measured, and where the number must lie for the claim to hold.

    >>> bounds = between(3 + 10 / 71, 3 + 1 / 7)
    >>> Claim("pi", "a circle is pi diameters around", "Archimedes", 3.1416, bounds).verdict
    'holds'
    """

    id: str
    statement: str
    source: str
    measured: float | None
    interval: Interval
    # standard error of the measured number, where it is an average over random systems
    error: float | None = None
    note: str = ""
    erratum: str = ""  # what is printed, where print departs from this claim

    def __post_init__(self) -> None:
        """A claim that no number can refute, or that none can meet, says nothing. Where what is
        expected is no number, the claim fails.
        """
        low, high = self.interval
        require(
            not low > high and not (math.isinf(low) and math.isinf(high)),
            f"the interval of the claim {self.id!r}",
            "(low, high) with low <= high and one end that is finite",
            f"({low}, {high})",
            "write at_least(low), at_most(high) or between(low, high)",
        )

    @property
    def verdict(self) -> str:
        """`holds`, `fails` (also for a number that is none), or `not run`."""
        if self.measured is None:
            return NOT_RUN
        low, high = self.interval
        return HOLDS if math.isfinite(self.measured) and low <= self.measured <= high else FAILS

    def as_json(self, marked: bool = False) -> dict[str, Any]:
        """Plain values; an open end of the interval is null, as is a number that is none. Both ends
        are null where either is no number. Formulas are plain text, or stay marked where wanted.
        """
        known = not any(math.isnan(end) for end in self.interval)
        plain = asdict(self) | {
            "verdict": self.verdict,
            "interval": [_finite(end) if known else None for end in self.interval],
        }
        texts = {} if marked else {name: plain_text(plain[name]) for name in MARKED}
        numbers = {"measured": _finite(self.measured), "error": _finite(self.error)}
        return plain | texts | numbers


def near(value: float, tolerance: float) -> Interval:
    """Within so much of a value."""
    return float(value) - tolerance, float(value) + tolerance


def near_relative(value: float, tolerance: float) -> Interval:
    """Within a share of a value."""
    return near(value, abs(float(value)) * tolerance)


def monte_carlo(expected: float, error: float, sigmas: float = 4.0, slack: float = 0.0) -> Interval:
    """Within so many standard errors of what is expected, plus a slack for a known bias (a grid, a
    step).
    """
    return near(expected, sigmas * float(error) + slack)


def at_most(value: float) -> Interval:
    """Every number up to this one.

    >>> at_most(2)
    (-inf, 2.0)
    """
    return -math.inf, float(value)


def at_least(value: float) -> Interval:
    """Every number from this one on.

    >>> at_least(2)
    (2.0, inf)
    """
    return float(value), math.inf


def between(low: float, high: float) -> Interval:
    """Every number from `low` to `high`.

    >>> between(1, 2)
    (1.0, 2.0)
    """
    return float(low), float(high)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)

"""What a field may be, learned from the checks of its own class.

A member refuses a bad number when it is made. So its bounds are found by making it: the number is
moved away until the member refuses, and the edge is found by halving. The page then marks a bad
value where it is typed, in the words of the library.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from tokenflock.errors import UserError
from tokenflock.frozen import Frozen

FAR = (1.0, 2.0, 4.0, 10.0, 100.0, 1e4, 1e8, 1e16, 1e200)  # how far to look
HALVINGS = 200
_GOT = "{got}"


def bounds(member: Frozen, name: str, whole: bool = False) -> dict[str, Any]:
    """The least and the greatest value of a field, with what the library says beyond them.

    >>> from tokenflock.starts import Cap
    >>> edges = bounds(Cap(), "angle")
    >>> edges["low"]["at"], edges["low"]["allowed"], round(edges["high"]["at"], 6)
    (0.0, False, 3.141593)
    >>> edges["low"]["text"]
    'angle must be between 0 and pi, got {got}; write e.g. angle=0.5'
    """

    def refused(value: float) -> str | None:
        return refusal(lambda: dataclasses.replace(member, **{name: _of_kind(value, whole)}))

    good = float(getattr(member, name))
    down = [value for value in (0.0, *(-far for far in FAR)) if value < good]
    up = [value for value in FAR if value > good]
    edges = {"low": _edge(refused, good, down, whole), "high": _edge(refused, good, up, whole)}
    return {side: edge for side, edge in edges.items() if edge is not None}


def refusal(make: Callable[[], Any]) -> str | None:
    """What the library says when a member cannot be made; None where it can."""
    try:
        make()
    except UserError as error:
        return str(error)
    return None


def _of_kind(value: float, whole: bool) -> float | int:
    return round(value) if whole else value


def _edge(
    refused: Callable[[float], str | None], good: float, ladder: list[float], whole: bool
) -> dict[str, Any] | None:
    """Where values begin to be refused on the way along a ladder; None where they never are."""
    for bad in ladder:
        if text := refused(bad):
            break
        good = bad
    else:
        return None
    said = _template(text, _of_kind(bad, whole))
    for _ in range(HALVINGS):
        middle = (good + bad) / 2
        if middle in (good, bad) or (whole and abs(good - bad) <= 1):
            break
        good, bad = (good, middle) if refused(middle) else (middle, bad)
    at = _plain(bad)
    allowed = refused(at) is None
    if whole and not allowed:
        at, allowed = float(round(good)), True
    return {"at": at, "allowed": allowed, "text": said}


def _plain(value: float) -> float:
    """The edge as a person would write it: what halving leaves is a last digit off."""
    if abs(value) < 1e-40:
        return 0.0
    digits = 12 - math.ceil(math.log10(abs(value)))
    return round(value, digits) if abs(digits) < 300 else value


def _template(text: str, value: float | int) -> str:
    """A refusal with a place for the value that comes."""
    for shown in (f"got {value!r}", f"got {value:g}", f"got {value}"):
        if shown in text:
            return text.replace(shown, f"got {_GOT}")
    return text

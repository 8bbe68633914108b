"""Arguments into float64 arrays, or an error that says what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokenflock.errors import UserError

Numbers: TypeAlias = Any
"""What every closed form returns: a float64 for numbers, an array of them for arrays. As with
NumPy's own functions, a type checker cannot say which."""


def refuse(argument: str, wanted: str, came: object, instead: str) -> NoReturn:
    """Raise the error that names the argument, what was wanted, what came, and what to write."""
    raise UserError(
        f"{argument} must be {wanted}, got {came!r}. Write for example {argument}={instead}."
    )


def real(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite or infinite numbers, never NaN."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.asarray(np.nan)
    if np.isnan(array).any():
        refuse(argument, "a number or an array of numbers", value, instead)
    return array


def finite(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite numbers."""
    array = real(argument, value, instead)
    if not np.isfinite(array).all():
        refuse(argument, "finite", value, instead)
    return array


def at_least(argument: str, value: ArrayLike, low: float, instead: str) -> NDArray[np.float64]:
    """Numbers from `low` on."""
    array = real(argument, value, instead)
    if (array < low).any():
        refuse(argument, f"at least {low:g}", value, instead)
    return array


def above(argument: str, value: ArrayLike, low: float, instead: str) -> NDArray[np.float64]:
    """Numbers greater than `low`."""
    array = real(argument, value, instead)
    if (array <= low).any():
        refuse(argument, f"greater than {low:g}", value, instead)
    return array


def between(
    argument: str, value: ArrayLike, low: float, high: float, instead: str
) -> NDArray[np.float64]:
    """Strictly inside (low, high)."""
    array = real(argument, value, instead)
    if ((array <= low) | (array >= high)).any():
        refuse(argument, f"strictly between {low:g} and {high:g}", value, instead)
    return array


def within(
    argument: str, value: ArrayLike, low: float, high: float, instead: str
) -> NDArray[np.float64]:
    """Inside [low, high], ends included."""
    array = real(argument, value, instead)
    if ((array < low) | (array > high)).any():
        refuse(argument, f"from {low:g} to {high:g}", value, instead)
    return array


def whole(argument: str, value: ArrayLike, low: int, instead: str) -> NDArray[np.float64]:
    """Whole numbers from `low` on."""
    array = finite(argument, value, instead)
    if ((array < low) | (array != np.round(array))).any():
        refuse(argument, f"a whole number, at least {low}", value, instead)
    return array


def nonzero(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite numbers, none of them zero."""
    array = finite(argument, value, instead)
    if (array == 0).any():
        refuse(argument, "different from 0", value, instead)
    return array


def choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """One of the texts in `choices`."""
    if value not in choices:
        refuse(argument, "one of " + ", ".join(map(repr, choices)), value, repr(choices[0]))
    return value

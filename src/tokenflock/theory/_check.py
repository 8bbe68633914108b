"""Arguments into float64 arrays, or an error that says what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokenflock.errors import UserError, real_numbers

Numbers: TypeAlias = Any
"""What every closed form returns: a float64 for numbers, an array of them for arrays. As with
NumPy's own functions, a type checker cannot say which."""


FEW = 8  # numbers that an error shows whole
LONG = 80  # characters of what came, from which on they are cut
MOST = 1e15  # of a whole number; soon beyond it n - 1 and n are one number in double precision
ROUNDING = 1e-9  # how far outside its interval a cosine that was computed may be


def refuse(argument: str, wanted: str, came: object, instead: str, where: str = "") -> NoReturn:
    """Raise the error that names the argument, what was wanted, what came, and what to write.

    Arrays are told as the numbers and lists that one types.
    """
    plain = came.tolist() if isinstance(came, (np.ndarray, np.generic)) else came
    told = " ".join(repr(plain).split())  # of a text with several lines too, in one
    told = told if len(told) <= LONG else f"{told[: LONG - 3]}..."
    raise UserError(
        f"{argument} must be {wanted}, got {told}{where}. Write for example {argument}={instead}."
    )


def hold(
    fine: NDArray[np.bool_], argument: str, wanted: str, value: ArrayLike, instead: str
) -> None:
    """Refuse a value unless all its numbers are fine; of many, the first that is not is told.

    >>> hold(np.arange(100) < 60, "beta", "small", np.arange(100), "1.0")
    Traceback (most recent call last):
        ...
    tokenflock.errors.UserError: beta must be small, got 60 (at [60]). Write for example beta=1.0.
    """
    if fine.all():
        return
    if fine.size <= FEW:
        refuse(argument, wanted, value, instead)
    place = tuple(map(int, np.argwhere(~fine)[0]))
    refuse(argument, wanted, np.asarray(value)[place].item(), instead, f" (at {list(place)})")


def real(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite or infinite numbers, never NaN."""
    wanted = "a number or an array of numbers"
    array = real_numbers(value)
    if array is None:
        refuse(argument, wanted, value, instead)
    hold(~np.isnan(array), argument, wanted, value, instead)
    return array


def finite(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite numbers."""
    array = real(argument, value, instead)
    hold(np.isfinite(array), argument, "finite", value, instead)
    return array


def at_least(argument: str, value: ArrayLike, low: float, instead: str) -> NDArray[np.float64]:
    """Numbers from `low` on."""
    array = real(argument, value, instead)
    hold(array >= low, argument, f"at least {low:g}", value, instead)
    return array


def above(argument: str, value: ArrayLike, low: float, instead: str) -> NDArray[np.float64]:
    """Numbers greater than `low`."""
    array = real(argument, value, instead)
    hold(array > low, argument, f"greater than {low:g}", value, instead)
    return array


def between(
    argument: str, value: ArrayLike, low: float, high: float, instead: str
) -> NDArray[np.float64]:
    """Strictly inside (low, high)."""
    array, wanted = real(argument, value, instead), f"strictly between {low:g} and {high:g}"
    hold((array > low) & (array < high), argument, wanted, value, instead)
    return array


def within(
    argument: str, value: ArrayLike, low: float, high: float, instead: str
) -> NDArray[np.float64]:
    """Inside [low, high], ends included."""
    array, wanted = real(argument, value, instead), f"from {low:g} to {high:g}"
    hold((array >= low) & (array <= high), argument, wanted, value, instead)
    return array


def whole(
    argument: str, value: ArrayLike, low: int, instead: str, high: float = MOST
) -> NDArray[np.float64]:
    """Whole numbers from `low` to `high`."""
    array, wanted = finite(argument, value, instead), f"a whole number, at least {low}"
    hold((array >= low) & (array == np.round(array)), argument, wanted, value, instead)
    hold(array <= high, argument, f"a whole number, at most {high:g}", value, instead)
    return array


def cosine(
    argument: str, value: ArrayLike, n: ArrayLike, instead: str = "0.0"
) -> NDArray[np.float64]:
    """A cosine that n equiangular tokens can have, both ends included; what is outside by rounding
    is brought back.

    >>> print(cosine("gamma", 1 + 1e-12, 4), cosine("gamma", [-1 / 3, 0.5], 4).round(3))
    1.0 [-0.333  0.5  ]
    """
    array, least = real(argument, value, instead), -1 / (np.asarray(n, dtype=np.float64) - 1)
    fine = (array >= least - ROUNDING) & (array <= 1 + ROUNDING)
    if not fine.all():
        wanted = f"between -1/(n-1) = {np.max(least):.4g} and 1 (n equiangular tokens)"
        refuse(argument, wanted, value, instead)
    return np.clip(array, least, 1.0)


def nonzero(argument: str, value: ArrayLike, instead: str = "1.0") -> NDArray[np.float64]:
    """Finite numbers, none of them zero."""
    array = finite(argument, value, instead)
    hold(array != 0, argument, "different from 0", value, instead)
    return array


def choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """One of the texts in `choices`."""
    if value not in choices:
        refuse(argument, "one of " + ", ".join(map(repr, choices)), value, repr(choices[0]))
    return value

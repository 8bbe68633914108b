"""Errors that name the argument, what was wanted, what came, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class UserError(ValueError):
    """A mistake in the input, told in one line that contains the remedy."""


class SimulationError(RuntimeError):
    """A run that could not be finished honestly: it diverged, stalled or lost its numbers."""


class OverflowWarning(RuntimeWarning):
    """Part of a result left the numbers; the rest of it is good."""


def overflowed(what: str, dtype: str) -> str:
    """What to say of a run that left the numbers."""
    return (
        f"{what} is not finite in {dtype}: it overflowed. Take dtype='float64', a smaller beta or"
        " step, Energy(log=True), or the clock 'peak' for unnormalised attention"
    )


def require(condition: bool, argument: str, wanted: str, got: object, instead: str = "") -> None:
    """Raise `UserError` unless `condition`: "`argument` must be `wanted`, got `got`; write
    `instead`".
    """
    if not condition:
        raise UserError(
            f"{argument} must be {wanted}, got {got}" + (f"; {instead}" if instead else "")
        )


def require_number(argument: str, value: Any, instead: str = "") -> None:
    """Refuse what is no real number, or one beyond all of 64 bits."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    fits = not isinstance(value, int) or abs(value) < 1 << 1023
    require(number and fits, argument, "a number", f"{value!r:.80}", instead)


def require_whole(argument: str, value: Any, least: int, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number, or too small or too large a one."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(whole, argument, "a whole number", f"{value!r:.80}")
    require(int(value) >= least, argument, f"{least} or more", value)
    require(int(value) <= most, argument, f"{most:,} or less", f"{value!r:.80}")


def require_switch(argument: str, value: Any) -> None:
    """Refuse what is neither True nor False: any other word would mean True."""
    plain = value.item() if hasattr(value, "item") else value
    require(isinstance(plain, bool), argument, "True or False", f"{value!r:.80}")


def all_numbers(argument: str, values: Any) -> np.ndarray:
    """Numbers as an array, or an error where they are none."""
    import numpy as np  # seldom needed before it is loaded anyway

    try:
        array = np.asarray(values)
        numeric = array.dtype.kind in "iuf"
        array = array.astype(float) if numeric else array
    except (TypeError, ValueError, OverflowError):  # rows of unequal lengths
        numeric, array = False, np.zeros(0)
    require(numeric or array.size == 0, argument, "numbers", f"{values!r:.80}")
    return array


def finite_numbers(argument: str, values: Any) -> np.ndarray:
    """Numbers as an array, or an error where some are none, or infinite."""
    import numpy as np

    array = all_numbers(argument, values)
    require(bool(np.isfinite(array).all()), argument, "finite", "NaN or infinity")
    return array


def require_known(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UserError` for an option that `what` does not have, with the nearest that it has."""
    known = list(known)
    for name in options:
        if name not in known:
            from difflib import get_close_matches  # seldom needed

            near = get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise UserError(f"{what} has no option {name!r}; {remedy}")

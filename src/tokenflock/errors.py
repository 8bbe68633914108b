"""Errors that name the argument, what was wanted, what came, and what to write instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from inspect import isfunction, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_SWITCHES = ("bool", "bool | None")  # annotations of arguments that are switches


class UserError(ValueError):
    """A mistake in the input, told in one line that contains the remedy."""


class SimulationError(RuntimeError):
    """A run that could not be finished honestly: it diverged, stalled or lost its numbers."""


class OverflowWarning(RuntimeWarning):
    """Part of a result left the numbers; the rest of it is good."""


class AccuracyWarning(UserWarning):
    """Steps of time are too long for the tolerance, in some cells of a result."""


def overflowed(what: str, dtype: str) -> str:
    """What to say of a run that left the numbers."""
    return (
        f"{what} is not finite in {dtype}: it overflowed. Take dtype='float64', a smaller beta or"
        " step, Energy(log=True), the clock 'peak' for unnormalised attention, or more rounds of"
        " SinkhornWeighing"
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
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    require(isinstance(plain, bool), argument, "True or False", f"{value!r:.80}")


def require_switches(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise if a value of an argument of a function that is a switch is neither True nor False."""
    for name, optional in _switches(function).items():
        if name in values and not (optional and values[name] is None):
            require_switch(name, values[name])


@cache
def _switches(function: Callable[..., Any]) -> dict[str, bool]:
    """The arguments of a function that are switches, and whether None may stand for them."""
    kinds = {name: each.annotation for name, each in signature(function).parameters.items()}
    words = {name: getattr(kind, "__name__", str(kind)) for name, kind in kinds.items()}
    return {name: "None" in word for name, word in words.items() if word in _SWITCHES}


@cache
def switched(function: Any) -> Any:
    """Return a function that refuses a switch that is neither True nor False; itself without any.

    The loader of public names applies it, so that no verb or plot can take "no" for True.
    """
    if not isfunction(function) or not _switches(function):
        return function

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        names = signature(function).parameters
        require_switches(function, dict(zip(names, args)) | options)
        return function(*args, **options)

    return call


def real_numbers(values: Any, truths: bool = False) -> np.ndarray | None:
    """Return real numbers as float64; None for anything else that NumPy would turn into numbers:
    text, dates, complex numbers, truths unless asked for, and masked arrays, whose missing entries
    would become 0.
    """
    import numpy as np  # seldom needed before it is loaded anyway

    try:
        if _masked(values):
            return None
        array = np.asarray(values)
        real = array.dtype.kind in ("iufb" if truths else "iuf") or (
            array.dtype.kind == "O" and all(_real(value) for value in array.ravel())
        )
        return array.astype(float) if real else None
    except (TypeError, ValueError, OverflowError):  # rows of unequal lengths
        return None


def _real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _masked(values: Any) -> bool:
    """Return whether some entries are masked, also inside lists."""
    if isinstance(values, (list, tuple)):
        return any(_masked(value) for value in values)
    mask = getattr(values, "mask", None)
    return mask is not None and hasattr(values, "filled") and bool(getattr(mask, "any", bool)())


def all_numbers(argument: str, values: Any) -> np.ndarray:
    """Numbers as an array, or an error where they are none."""
    import numpy as np

    array = real_numbers(values)
    if array is None:
        shown = " ".join(repr(values).split())
        require(np.size(values) == 0, argument, "numbers", f"{shown:.80}")
        return np.zeros(0)
    return array


def finite_numbers(argument: str, values: Any) -> np.ndarray:
    """Numbers as an array, or an error where some are none, or infinite."""
    import numpy as np

    array = all_numbers(argument, values)
    require(bool(np.isfinite(array).all()), argument, "finite", "NaN or infinity")
    return array


def one_schedule(t: Any, times: Any, frames: Any, last: float, count: int) -> tuple[float, int]:
    """Return the final time and the number of frames, `last` and `count` unless given.

    Raise if `times` is given beside `frames`, or beside a `t` that is not its end.
    """
    if times is None:
        return last if t is None else t, count if frames is None else frames
    require(frames is None, "frames", "left out where times are given", frames, "write one of them")
    end = max(all_numbers("times", times).ravel().tolist(), default=0.0)
    if t is not None:
        require_number("t", t, "write e.g. t=30")
        fits = abs(t - end) <= 1e-9 * abs(end)
        require(fits, "t", f"left out where times are given, which end at {end:g}", t)
    return end if 0 < end < math.inf else last, count  # other times are refused by who reads them


def require_known(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UserError` for an option that `what` does not have, with the nearest that it has."""
    known = list(known)
    for name in options:
        if name not in known:
            from difflib import get_close_matches  # seldom needed

            near = get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise UserError(f"{what} has no option {name!r}; {remedy}")

"""Errors that name the argument, what was wanted, what came, and what to write instead."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, isfunction, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import numpy as np


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


def shown(value: object) -> str:
    """Return a value in one short line; a class by its name."""
    text = value.__name__ if isinstance(value, type) else " ".join(repr(value).split())
    return f"{text:.80}"


def require(condition: bool, argument: str, wanted: str, got: object, instead: str = "") -> None:
    """Raise `UserError` unless `condition`: "`argument` must be `wanted`, got `got`; write
    `instead`".
    """
    if not condition:
        raise UserError(
            f"{argument} must be {wanted}, got {got}" + (f"; {instead}" if instead else "")
        )


def is_number(value: Any) -> bool:
    """Return whether a value is a real number: no truth, and no span of time, which NumPy registers
    as a whole number.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return isinstance(value, Real) and not isinstance(value, bool) and kind in "iuf"


def require_number(argument: str, value: Any, instead: str = "") -> None:
    """Refuse what is no real number, or one beyond all of 64 bits."""
    number = is_number(value)
    fits = not isinstance(value, int) or abs(value) < 1 << 1023
    require(number and fits, argument, "a number", shown(value), instead)


def require_coord_last(argument: str, value: Any) -> None:
    """Raise if an array with named axes, such as a DataArray, has its `coord` not at the end."""
    dims = getattr(value, "dims", ())
    turned = isinstance(dims, tuple) and "coord" in dims[:-1]
    remedy = f"write {argument}.transpose(..., 'coord')"
    require(not turned, argument, "an array whose last axis is 'coord'", f"{dims}", remedy)


def require_weights(argument: str, value: Any, count: int, what: str = "token") -> None:
    """Raise unless there is one weight for each of `count`, none negative, of a positive sum."""
    import numpy as np  # seldom needed before it is loaded anyway

    w = np.asarray(value, dtype=float)
    require(
        w.shape == (count,),
        argument,
        f"one weight for each {what}, shape ({count},)",
        f"shape {w.shape}",
    )
    with np.errstate(over="ignore"):
        fine = bool(np.isfinite(w).all() and (w >= 0).all() and 0 < w.sum() < np.inf)
    require(fine, argument, "weights of 0 or more with a positive, finite sum", shown(w.tolist()))


def require_whole(argument: str, value: Any, least: int, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number, or too small or too large a one."""
    whole = is_number(value) and isinstance(value, Integral)
    require(whole, argument, "a whole number", shown(value))
    require(int(value) >= least, argument, f"{least} or more", value)
    require(int(value) <= most, argument, f"{most:,} or less", shown(value))


def require_switch(argument: str, value: Any) -> None:
    """Refuse what is neither True nor False: any other word would mean True."""
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    require(isinstance(plain, bool), argument, "True or False", shown(value))


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
            array.dtype.kind == "O" and all(is_number(value) for value in array.ravel())
        )
        return array.astype(float) if real else None
    except (TypeError, ValueError, OverflowError):  # rows of unequal lengths
        return None


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
        require(_is_row(values) and len(values) == 0, argument, "numbers", shown(values))
        return np.zeros(0)
    return array


def finite_numbers(argument: str, values: Any) -> np.ndarray:
    """Numbers as an array, or an error where some are none, or infinite."""
    import numpy as np

    array = all_numbers(argument, values)
    require(bool(np.isfinite(array).all()), argument, "finite", "NaN or infinity")
    return array


def require_increasing(axis: str, values: Any) -> None:
    """Raise if the values of an axis of frames decrease: what follows would not be later."""
    import numpy as np

    array = np.asarray(values)
    rising = array.ndim < 1 or not (array[1:] < array[:-1]).any()
    require(rising, axis, "increasing", shown(array.tolist()), f"write result.sortby({axis!r})")


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


# --------------------------------------------------------------------------------------------------
# The arguments of public functions, against their annotations. The loaders of public names (that of
# tokenflock and those of the catalogue) go through `public`, so that all verbs and plots refuse a
# value of another kind in the same words, before anything runs.

# what argument of a plot may be how large; the names mean the same everywhere
RANGES = {
    "azimuth": (-36_000, 36_000),
    "between": (0, 10**15),
    "bins": (1, 1_000_000),
    "columns": (1, 100),
    "dpi": (1, 10_000),
    "elevation": (-36_000, 36_000),
    "rows": (1, 100),
    "spin": (-36_000, 36_000),
    "tail": (0, 1_000_000),
}
_WORDS: dict[Any, str] = {
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    str: "a text",
    os.PathLike: "a path",
    Callable: "a function",
    Mapping: "values by name",
    NoneType: "None",
    "ndarray": "an array of numbers",
    "Dataset": "an xarray Dataset",
    "Dynamics": "a law of motion such as SelfAttention(beta=4.0)",
    "Start": "a start such as Uniform(n=32, d=2)",
    "Solver": "a solver such as Layer(h=0.1)",
    "Event": "an event such as Consensus()",
    "Observable": "an observable such as Energy()",
}
# of classes whose instances can be told
_HOMES = ("builtins", "os", "collections", "tokenflock", "xarray", "matplotlib", "jax")


def public(package: str, home: str, name: str) -> Any:
    """Return what a package offers from a module; a function refuses arguments of another kind."""
    value = getattr(import_module(home), name)
    if isfunction(value):
        value = checked(value)
        value.__module__ = package  # where pickle finds it
    return value


@cache
def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses arguments of another kind than its annotations say."""
    names = [
        name
        for name, each in signature(function).parameters.items()
        if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        require_kinds(function, dict(zip(names, args)) | options)
        return function(*args, **options)

    return call


def require_kinds(form: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise if a value is not of the kind that the annotation of its argument or field says."""
    for name, hint in hints_of(form).items():
        if name in values:
            require_kind(name, hint, values[name])


def require_kind(name: str, hint: Any, value: Any) -> None:
    """Raise unless a value is of a kind, and in the range of a number of that name."""
    if not _fits(hint, value):
        require(False, name, _wanted(hint), shown(value), _remedy(hint, value))
    require_coord_last(name, value)
    if name in RANGES and isinstance(value, Real):
        low, high = RANGES[name]
        require(
            bool(low <= float(value) <= high), name, f"from {low:,} to {high:,}", f"{value!r:.80}"
        )


@cache
def hints_of(form: Callable[..., Any]) -> dict[str, Any]:
    """Return the kind of each argument of a function, or of each field of a class, by its name."""
    hints = get_type_hints(form)
    if not isinstance(form, type):
        several = [each for each in signature(form).parameters.values() if each.kind in (2, 4)]
        rest = [hints.pop(each.name, Any) for each in several]
        for table in (get_args(hint)[0] for hint in rest if get_origin(hint) is Unpack):
            hints |= get_type_hints(table)
    hints.pop("return", None)
    return hints


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value is of a kind. What cannot be told here is left to the function."""
    hint = getattr(hint, "array_type", hint)  # of jaxtyping; a shape is another matter
    origin, inside = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(each, value) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin in (bool, int, float):
        plain = value.item() if getattr(value, "ndim", None) == 0 else value
        if isinstance(plain, bool) or origin is bool:
            return isinstance(plain, bool) and origin is bool
        kind = Integral if origin is int else Real
        return isinstance(plain, kind) and real_numbers(value) is not None
    if origin in (tuple, Sequence):
        return _is_row(value) and _all_fit(origin, inside, value)
    if origin is Callable:
        return callable(value)
    if getattr(origin, "__name__", "") == "ndarray":
        return not isinstance(value, Mapping) and (_is_row(value) or hasattr(value, "__array__"))
    if not isinstance(origin, type) or origin.__module__.partition(".")[0] not in _HOMES:
        return True
    return isinstance(value, (origin, str) if issubclass(origin, Enum) else origin)


def _is_row(value: Any) -> bool:
    """Return whether a value is a list, a tuple or the like, or an array with an axis."""
    row = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    return row or (hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0)


def _all_fit(origin: Any, inside: tuple[Any, ...], value: Any) -> bool:
    """Return whether all members of a list or tuple are of their kinds."""
    if origin is Sequence and inside[0] in (float, int):
        numbers = real_numbers(value)
        row = numbers is not None and numbers.ndim == 1
        return len(value) == 0 or (row and (inside[0] is float or _whole(value)))
    kinds = inside if origin is tuple else inside * len(value)
    return len(kinds) == len(value) and all(map(_fits, kinds, value))


def _whole(values: Any) -> bool:
    import numpy as np  # loaded where there are numbers

    return np.asarray(values).dtype.kind in "iu"


def _wanted(hint: Any) -> str:
    """Return a kind in words."""
    return " or ".join(word for word in dict.fromkeys(_words(hint)) if word != "None")


def _words(hint: Any) -> Iterator[str]:
    origin, inside = get_origin(hint) or hint, get_args(hint)
    name = getattr(origin, "__name__", str(origin))
    if origin in (Union, UnionType):
        for each in inside:
            same = get_origin(each) is Sequence and get_args(each)[0] in inside
            yield from ["a list of them"] if same else _words(each)
    elif origin is Literal:
        yield from map(repr, inside)
    elif origin is tuple:
        yield f"{len(inside)} values, each {' or '.join(dict.fromkeys(map(_wanted, inside)))}"
    elif origin is Sequence:
        member, such, example = _wanted(inside[0]).partition(" such as ")
        yield f"a list of {member.partition(' ')[2]}s{such}{example}"
    else:
        article = "an" if name[0] in "AEIOU" else "a"
        yield _WORDS.get(origin) or _WORDS.get(name) or f"{article} {name}"


def _remedy(hint: Any, value: Any) -> str:
    """Return what to write instead of a class, or of one variable of a result."""
    kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
    kinds = tuple(kind for kind in kinds if not getattr(kind, "_is_protocol", False))
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, type) and issubclass(each, kinds):
            return f"write {each.__name__}(...)"
    part = type(value).__name__ == "DataArray" and "Dataset" in _wanted(hint)
    return "give the whole result, not one variable of it" if part else ""

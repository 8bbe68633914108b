"""Small frozen objects: the base of every dynamics, start, solver and observable.

A subclass lists its fields with plain annotations and a line of text under each. Every value is
checked against the kind of its field when an object is made, by the one function `settle`: numbers
stay Python numbers and arrays stay NumPy arrays until a verb casts them to its precision
(`precision.cast`), so an object means the same in float32 and float64 and can be written to JSON.
The right text becomes the member of an enumeration that it names; a wrong one is an error.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
import numbers
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import numpy as np

from tokenflock.errors import UserError, is_number, real_numbers

E = TypeVar("E", bound=enum.Enum)
LARGEST = 2**62  # of whole numbers: machines count no further
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "True or False",
    "str": "a text",
    "Array": "an array of numbers",
    "Path": "a function of time",
}


class Frozen(eqx.Module):
    """A frozen dataclass that is also a JAX pytree, each value of the kind that its field says."""

    cites: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, kinds in kinds_of(type(self)).items():
            value = settle(f"{type(self).__name__}.{name}", kinds, getattr(self, name))
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        names = [field.name for field in dataclasses.fields(self)]
        values = ", ".join(f"{name}={_short(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({values})"


def _short(value: Any) -> str:
    """Small arrays in full, large ones by their shape."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 9 else f"array{value.shape}"
    return value.name if isinstance(value, enum.Enum) else repr(value)


def concrete(value: Any) -> bool:
    """Whether a field holds a value that can be checked now (no tracer, batch or JAX array)."""
    return not isinstance(value, jax.Array)


Kind = str | type  # a word of _WORDS or "None", or a class


@cache
def kinds_of(cls: type[Frozen]) -> dict[str, tuple[Kind, ...]]:
    """What each field of a class may hold. A field whose annotation says nothing is left out."""
    kinds = {field.name: _kinds_of(cls, field) for field in dataclasses.fields(cls)}
    return {name: kind for name, kind in kinds.items() if kind}


def _kinds_of(cls: type[Frozen], field: dataclasses.Field) -> tuple[Kind, ...]:
    home = next(base for base in cls.__mro__ if field.name in inspect.get_annotations(base))
    scope = vars(sys.modules.get(home.__module__, sys.modules[__name__]))
    text = field.type.__name__ if isinstance(field.type, type) else str(field.type)
    return tuple(kind for word in text.split("|") if (kind := _kind(word.strip(), scope)))


def _kind(word: str, scope: dict[str, Any]) -> Kind | None:
    """The kind that one word of an annotation names; a sequence of members by its member."""
    if word in _WORDS or word == "None":
        return word
    value = scope.get(word)
    return value if isinstance(value, type) else None


def settle(name: str, kinds: Sequence[Kind], value: Any) -> Any:
    """One form for one meaning, or an error that says what was wanted.

    Numbers that JAX traces or batches pass: they were checked before.
    """
    if value is None and "None" in kinds:
        return value
    if isinstance(value, jax.Array) and {"float", "int", "bool", "Array"} & set(kinds):
        return value
    for kind in kinds:
        settled = _settled(kind, value, name, truths="bool" in kinds)
        if settled is not None:
            return settled
    raise UserError(f"{name} must be {_wanted(kinds)}, got {_got(value)}")


def _settled(kind: Kind, value: Any, name: str, truths: bool) -> Any:
    """The value in the form of a kind, or None where it is not of that kind.

    An array may hold truths where its field says `Array | bool`.
    """
    if isinstance(kind, type):
        if issubclass(kind, enum.Enum):
            return choice(kind, value, name)
        return value if isinstance(value, kind) else None
    if kind == "Array":
        return _array(value, name, truths)
    if kind in ("float", "int"):
        return _number(kind, value, name)
    fits = {
        "bool": isinstance(value, (bool, np.bool_)),
        "str": isinstance(value, str),
        "Path": callable(value) and not isinstance(value, type),
    }.get(kind, False)
    return (bool(value) if kind == "bool" else value) if fits else None


def _number(kind: str, value: Any, name: str) -> float | int | None:
    if isinstance(value, np.ma.MaskedArray):
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not is_number(value):
        return None
    if isinstance(value, numbers.Integral) and abs(int(value)) >= LARGEST:
        raise UserError(f"{name} must be smaller than 2^62, got {len(str(abs(int(value))))} digits")
    if not math.isfinite(value):
        raise UserError(f"{name} must be a finite number, got {value}")
    number = float(value)
    if kind == "float":
        return number
    if abs(number) >= LARGEST:
        raise UserError(f"{name} must be a whole number smaller than 2^62, got {number:g}")
    return int(value) if number == int(number) else None  # type: ignore[arg-type]


def _array(value: Any, name: str, truths: bool) -> np.ndarray | None:
    """A copy that nobody can change. A single number is no array."""
    array = real_numbers(value, truths)
    if array is None or array.ndim == 0:
        return None
    array = np.array(array)
    if array.size == 0:
        raise UserError(f"{name} must hold numbers, got none: shape {array.shape}")
    if not np.isfinite(array).all():
        raise UserError(f"{name} must hold finite numbers, got NaN or infinity")
    array.setflags(write=False)
    return array


def choice(kind: type[E], value: Any, name: str) -> E:
    """The member of an enumeration that a value is or names, or an error with the nearest name.

    >>> import enum
    >>> Ground = enum.Enum("Ground", {"GEODESIC": "geodesic", "CHORDAL": "chordal"})
    >>> choice(Ground, "chordal", "ground") is Ground.CHORDAL
    True
    """
    if isinstance(value, kind):
        return value
    table = {
        _plain(spelling): member for member in kind for spelling in (member.value, member.name)
    }
    if isinstance(value, str) and _plain(value) in table:
        return table[_plain(value)]
    shown = [_plain(member.value) for member in kind]
    near = get_close_matches(_plain(str(value)), shown, n=1)
    remedy = f"; did you mean {near[0]!r}?" if near else ""
    raise UserError(f"{name} must be one of {', '.join(shown)}, got {_got(value)}{remedy}")


def _plain(spelling: object) -> str:
    return str(spelling).lower().replace("_", "-")


def _wanted(kinds: Sequence[Kind]) -> str:
    words = [
        _WORDS[kind] if isinstance(kind, str) else _example(kind)
        for kind in kinds
        if kind != "None"
    ]
    return " or ".join(dict.fromkeys(words))


def _example(kind: type) -> str:
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    words = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()).rstrip(".:")
    return f"{article} {kind.__name__}" + (f" ({words[0].lower()}{words[1:]})" if words else "")


def _got(value: Any) -> str:
    """A value as an error shows it, cut where it is long; a class says that it is no object."""
    if isinstance(value, type):
        return f"the class {value.__name__}; make an object of it: {value.__name__}()"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."

"""Small frozen objects: the base of every dynamics, start, solver and observable.

A subclass lists its fields with plain annotations and a line of text under each. Numbers stay
Python numbers and arrays stay NumPy arrays until a verb casts them to its precision
(`precision.cast`), so an object means the same in float32 and float64 and can be written to JSON.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from tokenflock.errors import UserError


class Frozen(eqx.Module):
    """A frozen dataclass that is also a JAX pytree, with numbers and arrays brought to one form."""

    cites: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _settle(
                f"{type(self).__name__}.{field.name}", str(field.type), getattr(self, field.name)
            )
            object.__setattr__(self, field.name, value)

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


def _settle(name: str, kind: str, value: Any) -> Any:
    """One form for one meaning: `float` fields hold floats, `int` fields ints, `Array` fields
    float64 arrays.
    """
    if value is None or (
        isinstance(value, (jax.Array, Frozen, enum.Enum, bool, str))
        and kind not in ("float", "int")
    ):
        return value
    if isinstance(value, jax.Array) or (callable(value) and "Path" in kind):
        return value
    try:
        if kind.startswith("int"):
            if int(value) != value or isinstance(value, bool):
                raise ValueError
            return int(value)
        if kind.startswith("float") or (
            "Array" in kind and np.ndim(value) == 0 and "float" in kind
        ):
            return float(value)
        if "Array" in kind:
            array = np.array(value, dtype=np.float64)  # a copy: later changes of theirs are theirs
            array.setflags(write=False)
            if not np.isfinite(array).all():
                raise UserError(f"{name} must hold finite numbers, got NaN or infinity")
            return array
    except UserError:
        raise
    except (TypeError, ValueError):
        wanted = (
            "a whole number"
            if kind.startswith("int")
            else "a number"
            if kind == "float"
            else "an array of numbers"
        )
        raise UserError(f"{name} must be {wanted}, got {value!r}") from None
    return value

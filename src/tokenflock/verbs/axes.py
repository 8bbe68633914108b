"""Which numbers an ensemble sweeps over, and where they live."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError, real_numbers
from tokenflock.frozen import Frozen
from tokenflock.observables.observable import Observable
from tokenflock.solvers.solver import Solver
from tokenflock.starts.start import Start

ROLES = ("dynamics", "start", "solver", "observe")


@dataclass(frozen=True)
class Axis:
    """One swept parameter: its name, its values, and the attribute that takes them.

    `path` is (role, attribute, ...). An axis is `outer` where it changes a shape, the number of
    steps or the code that runs (anything of the start or the solver, and whole numbers and
    switches): those are looped over; all others run at once.
    """

    name: str
    values: np.ndarray
    path: tuple[Any, ...]
    outer: bool
    places: tuple[int, ...] = ()  # of the values in a larger ensemble, where this is part of one
    size: int = 0  # of the axis there

    def place(self, k: int) -> int:
        """Where the k-th value is in the whole ensemble: its systems are numbered by it."""
        return self.places[k] if self.places else k

    @property
    def whole(self) -> int:
        """How many values the axis has in the whole ensemble."""
        return self.size or len(self.values)

    def value(self, k: int) -> Any:
        """The k-th value: a number, or an array."""
        return self.values[k].item() if self.values.ndim == 1 else self.values[k]

    @property
    def coordinate(self) -> np.ndarray:
        """What labels the axis: the values, or a count where they are matrices."""
        return self.values if self.values.ndim == 1 else np.arange(len(self.values))


def axes(
    over: Mapping[str, Sequence[Any] | np.ndarray],
    dynamics: Dynamics,
    start: Start,
    solver: Solver,
    observe: Sequence[Observable],
    part: Mapping[str, tuple[Sequence[int], int]] | None = None,
) -> list[Axis]:
    """The axes that `over` names: `beta`, `dynamics.base.beta`, `n`, `solver.h`, `observe.0.delta`,
    ...
    """
    parts = {"dynamics": dynamics, "start": start, "solver": solver, "observe": tuple(observe)}
    swept = []
    for name, values in over.items():
        array = swept_values(name, values)
        path = find(name, parts)
        shapes = path[0] in ("start", "solver") or isinstance(_leaf(parts, path), (int, enum.Enum))
        places, size = (part or {}).get(name, ((), 0))
        swept.append(Axis(name, array, path, shapes, tuple(int(k) for k in places), int(size)))
    return swept


def swept_values(name: str, values: Any) -> np.ndarray:
    """The values of an axis, or an error where they are no numbers of one shape."""
    shown = f"{' '.join(repr(values).split()):.80}"
    try:
        array = np.ma.asarray(values)
    except ValueError:
        raise UserError(f"over[{name!r}] must be values of one shape, got {shown}") from None
    if array.ndim == 0 or array.size == 0:
        raise UserError(
            f"over[{name!r}] must be a list of values, got {shown}; write e.g."
            f" over={{{name!r}: [1.0, 2.0]}}"
        )
    if real_numbers(values, truths=True) is None:
        raise UserError(f"over[{name!r}] must be numbers, got {shown}; run one ensemble for each")
    return np.asarray(array)


def find(name: str, parts: dict[str, Any], told: str = "over") -> tuple[Any, ...]:
    """The path to a parameter by its bare name or its dotted path; `told` is who named it."""
    return _dotted(name, parts, told) if "." in name else _bare(name, parts, told)


def _leaf(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return what stands at a path of keys and fields; no other attribute counts."""
    for step in path:
        fields = None if isinstance(tree, (dict, tuple)) else dataclasses.fields(tree)
        if fields is None:
            tree = tree[step]
        else:
            tree = {field.name: getattr(tree, field.name) for field in fields}[step]
    return tree


def _dotted(name: str, parts: dict[str, Any], told: str) -> tuple[Any, ...]:
    try:
        path = tuple(int(step) if step.isdecimal() else step for step in name.split("."))
        _leaf(parts, path)
    except (KeyError, IndexError, TypeError, ValueError):
        raise UserError(
            f"{told} has no parameter {name!r:.80}; begin with dynamics., start., solver. or"
            " observe.0."
        ) from None
    return path


def _bare(name: str, parts: dict[str, Any], told: str) -> tuple[Any, ...]:
    """A bare name is looked for in the dynamics first, then in the start, the solver and the
    observables.
    """
    name = {"step": "h"}.get(name, name)
    everywhere = next(
        (paths for role in ROLES if (paths := _search(parts[role], (role,), name))), []
    )
    if not everywhere:
        known = sorted({path[-1] for role in ROLES for path in _search(parts[role], (role,), None)})
        near = get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UserError(f"{told} has no parameter {name!r}; {remedy}")
    if len(everywhere) > 1:
        choices = " or ".join(repr(".".join(map(str, path))) for path in everywhere)
        raise UserError(f"{told}[{name!r}] could be more than one parameter; write {choices}")
    return everywhere[0]


def _search(part: Any, path: tuple[Any, ...], name: str | None) -> list[tuple[Any, ...]]:
    """Every path to an attribute called `name` (None: any) in a tree of frozen objects."""
    if isinstance(part, tuple):
        inner = [_search(member, (*path, k), name) for k, member in enumerate(part)]
        return [place for places in inner for place in places]
    if not isinstance(part, Frozen):
        return []
    places = []
    for field in dataclasses.fields(part):
        here, value = (*path, field.name), getattr(part, field.name)
        if isinstance(value, Frozen):
            places += _search(value, here, name)
        elif name in (None, field.name):
            places.append(here)
    return places


def put(part: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of an object (or of a tuple or dict of them) with another value at a path, checked as
    a new object is.
    """
    head, *rest = path
    if isinstance(part, dict):
        return part | {head: put(part[head], tuple(rest), value)}
    if isinstance(part, tuple):
        return (*part[:head], put(part[head], tuple(rest), value), *part[head + 1 :])
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    fields[head] = put(fields[head], tuple(rest), value) if rest else value
    return type(part)(**fields)

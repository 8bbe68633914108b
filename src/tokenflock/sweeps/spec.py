"""A sweep as one text: what moves, from where, how it is observed, over which grid."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.choose import ENGINES
from tokenflock.errors import UserError, require, require_switch
from tokenflock.events.event import Event
from tokenflock.frozen import settle
from tokenflock.matrices._random import RandomMatrices
from tokenflock.observables.observable import Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.precision import DTYPES
from tokenflock.solvers.solver import Solver
from tokenflock.starts.start import Start
from tokenflock.sweeps.building import Mistakes, member, random_matrices
from tokenflock.sweeps.cut import Cut
from tokenflock.sweeps.lines import MOST_PARTS, endless_key, key_lines
from tokenflock.sweeps.refine import Refine
from tokenflock.verbs.asked import Request, asked
from tokenflock.verbs.filling import cut
from tokenflock.verbs.schedule import when_to_look

LARGEST = 2**24  # bytes of a spec
MOST = 2_000_000  # values of an axis, each of which the description of a store tells
MOST_AXES = 24  # of two values or more there are no more blocks than can be kept
SHOWN = 20  # mistakes that are told one by one
WIDEST = 500  # characters of what is said of one
NUMBERS = {  # what stands at the top of a spec, and what each may be
    "seed": ("int",),
    "repeats": ("int",),
    "t": ("float",),
    "times": ("Array",),
    "frames": ("int",),
    "precision": ("str",),
    "keep": ("bool",),
    "quantiles": ("Array",),
    "engine": ("str",),
    "rotate": ("bool",),
    "settle": ("bool",),
    "tolerance": ("float",),
    "memory": ("float",),
    "cells": ("int",),
}
ROLES = {"dynamics": "dynamics", "start": "starts", "solver": "solvers", "until": "events"}
TABLES = (*ROLES, "observe", "matrices", "over", "refine")


class SpecError(UserError):
    """All that is wrong with a spec: one line each, with the line of the spec that it is in; of
    very many the first, and how many more there are.
    """

    def __init__(self, name: str, told: Sequence[tuple[int, str]], more: int = 0) -> None:
        more += max(len(told) - SHOWN, 0)
        self.mistakes = [
            f"{name}, line {line}: {words if len(words) <= WIDEST else words[:WIDEST] + ' ...'}"
            for line, words in sorted(told)[:SHOWN]
        ]
        self.mistakes += [f"{name}: and {more:,} more mistakes like these"] * (more > 0)
        super().__init__("\n".join(self.mistakes))


@dataclass(frozen=True)
class Spec:
    """A sweep: the same names as the options of `ensemble`.

    `precision` is the `dtype` of `ensemble`; `cells` is how many cells a block has, unless that is
    found from their cost; `refine` says where more is computed.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> Spec(SelfAttention(), Uniform(n=8, d=3), over={"beta": [1.0, 4.0]}).asked().plan.shape
    (2,)
    """

    dynamics: Dynamics
    start: Start
    over: Mapping[str, Any] = field(default_factory=dict)
    solver: Solver | None = None
    observe: Sequence[Observable] = (PairDensity(),)
    until: Event | None = None
    matrices: RandomMatrices | None = None
    repeats: int = 256
    t: float | None = None
    times: Sequence[float] | np.ndarray | None = None
    frames: int | None = None
    seed: int = 0
    precision: str | None = None
    keep: bool = False
    quantiles: Sequence[float] = ()
    engine: str = "auto"
    rotate: bool = True
    settle: bool = True
    tolerance: float | None = 1e-3
    memory: float | None = None
    cells: int | None = None
    refine: Refine | None = None

    def cut(self, wanted: Request) -> Cut:
        """How the grid of what it asks for is cut into blocks; too many of them are refused."""
        whole = cut(wanted, self.cells) if self.refine is None else self.refine.cut(wanted)
        whole.check()
        return whole

    def asked(self, over: Mapping[str, Any] | None = None) -> Request:
        """The ensemble that it asks for, checked; of other axes where those are given."""
        return asked(
            self.dynamics,
            self.start,
            self.over if over is None else over,
            self.repeats,
            when_to_look(self.t, self.times, self.frames),
            self.solver,
            self.observe,
            self.until,
            self.seed,
            {
                "matrices": self.matrices,
                "keep": self.keep,
                "quantiles": list(self.quantiles),
                "dtype": self.precision,
                "engine": self.engine,
                "rotate": self.rotate,
                "settle": self.settle,
                "tolerance": self.tolerance,
                "memory": self.memory,
            },
        )


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """The spec in a TOML file; all that is wrong with it is told at once."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        raise UserError(f"{path} cannot be read; write the path of a spec in TOML") from None
    require(len(data) <= LARGEST, str(path), f"at most {LARGEST} bytes", "more")
    try:
        return parse(data.decode("utf-8"), path.name)
    except UnicodeDecodeError:
        raise UserError(f"{path} must be text (UTF-8)") from None


def parse(text: str, name: str = "spec") -> Spec:
    """A spec from its text.

    >>> spec = parse('[dynamics]\\nname = "causal"\\n[start]\\nname = "uniform"\\nn = 8\\nd = 3')
    >>> spec.dynamics, spec.repeats
    (Causal(beta=1.0, Q=None, K=None, V=None), 256)
    >>> try:
    ...     parse('repeats = "many"\\nframes = 1')
    ... except SpecError as error:
    ...     print(error)
    spec, line 1: a spec needs a table [dynamics]
    spec, line 1: a spec needs a table [start]
    spec, line 1: repeats must be a whole number, got 'many'
    spec, line 2: frames must be 2 or more, got 1
    """
    if (endless := endless_key(text)) is not None:
        line, parts = endless
        words = f"a key must have at most {MOST_PARTS} parts with dots between, got {parts:,}"
        raise SpecError(name, [(line, words)])
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words, _, place = str(error).partition(" (at ")
        line = place.partition("line ")[2].partition(",")[0]
        raise SpecError(name, [(int(line) if line.isdigit() else 1, words)]) from None
    except RecursionError:
        raise UserError(f"{name} is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise UserError(f"{name} cannot be read: {error!s:.200}") from None
    mistakes = Mistakes(key_lines(text))
    spec = _spec(plain, mistakes)
    if mistakes.told or spec is None:
        raise SpecError(name, mistakes.told, mistakes.more)
    return spec


def _spec(plain: dict[str, Any], mistakes: Mistakes) -> Spec | None:
    """The spec, as far as it can be made; what is wrong is added to the mistakes."""
    for key in plain:
        if key not in (*NUMBERS, *TABLES):
            mistakes.unknown((key,), [*NUMBERS, *TABLES], "a spec")
    values = _numbers(plain, mistakes)
    for role in ("dynamics", "start"):
        if role not in plain:
            mistakes.add((), f"a spec needs a table [{role}]")
    for role, kind in ROLES.items():
        if role in plain:
            values[role] = member(kind, plain[role], (role,), mistakes)
    if "observe" in plain:
        values["observe"] = _observables(plain["observe"], mistakes)
    if "matrices" in plain:
        values["matrices"] = random_matrices(plain["matrices"], ("matrices",), mistakes)
    values["over"] = _over(plain.get("over", {}), mistakes)
    if "refine" in plain:
        values["refine"] = _refine(plain["refine"], mistakes)
    if values.get("dynamics") is None or values.get("start") is None:
        return None
    sound = {key: value for key, value in values.items() if value is not None}
    spec = Spec(**sound)
    _check(spec, plain, mistakes)
    return spec


def _numbers(plain: dict[str, Any], mistakes: Mistakes) -> dict[str, Any]:
    """What stands at the top, each of its kind and in its range."""
    ranges = {
        "repeats": (lambda value: value >= 1, "1 or more"),
        "frames": (lambda value: value >= 2, "2 or more"),
        "t": (lambda value: value > 0, "a positive final time"),
        "seed": (lambda value: 0 <= value < 2**63, "a whole number from 0 to 2^63 - 1"),
        "cells": (lambda value: value >= 1, "1 or more"),
        "memory": (lambda value: value > 0, "a positive number of bytes"),
        "precision": (lambda value: value in DTYPES, "'float32' or 'float64'"),
        "engine": (lambda value: value in ENGINES, f"one of {', '.join(ENGINES)}"),
        "quantiles": (lambda value: ((value >= 0) & (value <= 1)).all(), "between 0 and 1"),
    }
    values = {}
    for key, kinds in NUMBERS.items():
        if key not in plain:
            continue
        try:
            values[key] = settle(key, kinds, plain[key])
            fits, wanted = ranges.get(key, (lambda value: True, ""))
            require(bool(fits(values[key])), key, wanted, f"{plain[key]!r:.80}")
        except UserError as error:
            mistakes.add((key,), error)
            values.pop(key, None)
    return values


def _observables(plain: Any, mistakes: Mistakes) -> list[Observable] | None:
    """The observables: names, or tables with a name."""
    entries = plain if isinstance(plain, list) else [plain]
    built = [
        member("observables", entry, ("observe", k), mistakes) for k, entry in enumerate(entries)
    ]
    return None if any(each is None for each in built) else built


def _over(plain: Any, mistakes: Mistakes) -> dict[str, np.ndarray]:
    """The axes: lists of numbers, or a first, a last and a count."""
    if not isinstance(plain, dict):
        mistakes.add(("over",), "over must be a table of lists, e.g. beta = [1.0, 2.0]")
        return {}
    axes, flat = {}, _flat(plain)
    if len(flat) > MOST_AXES:
        mistakes.add(("over",), f"over must have at most {MOST_AXES} axes, got {len(flat):,}")
        return {}
    for name, values in flat:
        try:
            axes[".".join(name)] = _axis(".".join(name), values)
        except UserError as error:
            mistakes.add(("over", *name), error)
    return axes


def _flat(plain: dict[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """The axes by their names, of which one with dots is a table of tables to TOML."""
    flat = []
    for key, value in plain.items():
        if isinstance(value, dict) and not {"first", "last", "count"} & set(value):
            flat += [((key, *rest), inside) for rest, inside in _flat(value)]
        else:
            flat.append(((key,), value))
    return flat


def _axis(name: str, values: Any) -> np.ndarray:
    """The values of one axis."""
    if isinstance(values, dict):
        fine = {"first", "last", "count"} <= set(values) <= {"first", "last", "count", "log"}
        require(fine, name, "first, last and count (and log)", f"{', '.join(values):.80}")
        first, last = (
            settle(f"{name}.{key}", ("float",), values[key]) for key in ("first", "last")
        )
        count = settle(f"{name}.count", ("int",), values["count"])
        require(1 <= count <= MOST, f"{name}.count", f"from 1 to {MOST:,}", f"{count:,}")
        log = values.get("log", False)
        require_switch(f"{name}.log", log)
        if log:
            require(first > 0 and last > 0, name, "positive, for a logarithmic axis", first)
            return np.geomspace(first, last, count)
        return np.linspace(first, last, count)
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.zeros(0)
    fine = array.ndim >= 1 and array.size > 0 and array.dtype.kind in "biuf"
    require(fine, name, "a list of numbers", f"{values!r:.80}", f"write e.g. {name} = [1.0, 2.0]")
    require(len(array) <= MOST, name, f"a list of at most {MOST:,} numbers", f"{len(array):,}")
    require(array.dtype.kind != "f" or bool(np.isfinite(array).all()), name, "finite", "nan or inf")
    return array


def _refine(plain: Any, mistakes: Mistakes) -> Refine | None:
    """What is refined, each number checked."""
    if not isinstance(plain, dict):
        mistakes.add(("refine",), "refine must be a table, e.g. bend = 0.1")
        return None
    kinds, values, before = Refine.KINDS, {}, len(mistakes.told)
    for key, value in plain.items():
        if key not in kinds:
            mistakes.unknown(("refine", key), list(kinds), "refine")
            continue
        try:
            values[key] = settle(key, kinds[key], value)
        except UserError as error:
            mistakes.add(("refine", key), error)
    if len(mistakes.told) > before:
        return None
    try:
        return Refine(**values)
    except UserError as error:
        told = next((key for key in plain if str(error).startswith(key)), "")
        mistakes.add(("refine", told), error)
        return None


def _check(spec: Spec, plain: dict[str, Any], mistakes: Mistakes) -> None:
    """Whether the parts go together: each axis by itself, then all of it."""
    before = len(mistakes.told)
    for name in spec.over:
        try:
            spec.asked({name: spec.over[name]})
        except UserError as error:
            path = _told_by(str(error), plain)
            mistakes.add(("over", *name.split(".")) if len(path) != 1 else path, error)
    if len(mistakes.told) == before:
        try:
            wanted = spec.asked()
            if spec.refine is not None:
                spec.refine.check(wanted)
        except UserError as error:
            mistakes.add(_told_by(str(error), plain), error)
        else:
            try:
                spec.cut(wanted)
            except UserError as error:
                mistakes.add(("cells",) if "cells" in plain else ("over",), error)
    unique = dict.fromkeys(mistakes.told)
    mistakes.told[:] = list(unique)


def _told_by(error: str, plain: dict[str, Any]) -> tuple[str, ...]:
    """The path of the argument that an error names."""
    name = error.partition(" must")[0].split(".")[-1]
    if name in plain:
        return (name,)
    table = next(
        (key for key, each in plain.items() if isinstance(each, dict) and name in each), ""
    )
    return (table, name) if table else ()

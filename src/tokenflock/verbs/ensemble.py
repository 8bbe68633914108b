"""`ensemble`: many systems at once, statistics on the way, states never stored."""

from __future__ import annotations

import itertools
import os
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.choose import Choice, choose
from tokenflock.engines.job import Job, Values
from tokenflock.engines.systems import Systems
from tokenflock.errors import SimulationError, UserError, overflowed, require
from tokenflock.matrices._random import RandomMatrices, Value
from tokenflock.observables.observable import Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.precision import cast, precision
from tokenflock.solvers.euler_maruyama import EulerMaruyama
from tokenflock.solvers.rk4 import RK4
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.schedule import check, check_kinds, require_whole, schedule
from tokenflock.verbs.store import Group, Store

ROLE = {"dynamics": 0, "solver": 1, "observe": 2}


def ensemble(
    dynamics: Dynamics,
    start: Start,
    *,
    over: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
    repeats: int = 256,
    t: float = 30.0,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int = 201,
    solver: Solver | None = None,
    observe: Sequence[Observable] = (PairDensity(),),
    matrices: RandomMatrices | None = None,
    quantiles: Sequence[float] = (),
    keep: bool = False,
    seed: int = 0,
    dtype: str = "float32",
    engine: str = "auto",
    rotate: bool = True,
    settle: bool = True,
    memory: float | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Run many systems and return means and standard errors of observables.

    Args: dynamics, start, solver, observe: as in `simulate`; the solver has a fixed step
      (`RK4(h=0.1)` unless given). over: parameters to sweep, e.g. {"beta": [1, 2, 4], "n": [16,
      32]}; each becomes an axis of the result. repeats: independent systems in each cell. t, times,
      frames: when to observe. matrices: random Q, K, V for an `Attention` dynamics. quantiles:
      shares whose quantiles over repeats are wanted, e.g. [0.1, 0.5, 0.9]. keep: keep every repeat
      instead of statistics. seed: one random key for each (seed, cell, repeat), whatever the
      engine, the device or the cut of the work. dtype: 'float32' or 'float64'. engine: 'auto',
      'batch' (XLA), 'resident' (GPU kernel) or 'lanes' (compiled CPU loop). rotate: turn tokens of
      isotropic laws into n dimensions where d > n. Exact. settle: stop a system once theory says
      that its observables are final. Exact. memory: bytes that the work may take at once; a quarter
      of what is free unless given. store: a file in which finished systems are kept until the end,
      so that an interrupted run goes on from there; a `Store` stays until its owner removes it.
      progress: called with the steps of systems that are done, and that there are.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> over = {"beta": [0.5, 1.0]}
    >>> result = ensemble(SelfAttention(), Uniform(n=8, d=3), over=over, repeats=16, t=20, frames=3)
    >>> result.pair_density.dims
    ('beta', 'time')
    """
    observe = check_kinds(dynamics, observe, seed, solver=solver)
    start = start if isinstance(start, Start) else Given(start)
    solver = solver or (EulerMaruyama(h=0.01) if dynamics.noisy else RK4(h=0.1))
    for observable in observe:
        # what an observable lacks must be there; each system binds its own later
        observable.bind(dynamics)
    found = sweeps.axes(over or {}, dynamics, start, solver, observe)
    solver = _fixed(solver)
    _check(dynamics, observe, repeats, quantiles, matrices)
    plan = Plan(
        dynamics,
        start,
        solver,
        observe,
        tuple(found),
        repeats,
        t,
        times,
        frames,
        matrices,
        seed,
        dtype,
        rotate,
        settle,
    )
    plan.check()
    recipe = plan.recipe() | {"quantiles": list(quantiles), "keep": keep, "engine": engine}
    summary = Summary(tuple(quantiles), keep)
    if isinstance(store, Store):
        return _run(plan, summary, store, recipe, memory, Tally(plan.total_steps(), progress))
    with Store(store) as own:
        result = _run(plan, summary, own, recipe, memory, Tally(plan.total_steps(), progress))
        own.remove()
    return result


def _run(
    plan: Plan,
    summary: Summary,
    saved: Store,
    recipe: dict[str, Any],
    memory: float | None,
    tally: Tally,
) -> xr.Dataset:
    """All sheets, from where the store has come to."""
    saved.begin(recipes.dumps(recipe))
    began, notes = clock.perf_counter(), {}
    try:
        with precision(plan.dtype):
            for sheet in plan.sheets():
                notes = _run_sheet(plan, sheet, recipe["engine"], memory, summary, saved, tally)
    except KeyboardInterrupt:
        saved.write()
        raise
    return _dataset(plan, summary, saved, recipe | {"chosen": notes}, clock.perf_counter() - began)


@dataclass
class Tally:
    """How much is done."""

    total: int
    report: Callable[[int, int], None] | None
    done: int = 0

    def add(self, steps: int) -> None:
        self.done += steps
        if self.report:
            self.report(self.done, self.total)


@dataclass(frozen=True)
class Summary:
    """What is kept of the repeats of one cell."""

    quantiles: tuple[float, ...]
    keep: bool

    def of(self, values: Any, cells: int) -> dict[str, np.ndarray]:
        """(cells x repeats, frames, ...) -> named arrays (cells, ...), computed where the values
        lie.
        """
        values = values.reshape(cells, -1, *values.shape[1:])
        if self.keep:
            return {"": np.asarray(values)}
        count = values.shape[1]
        if isinstance(values, np.ndarray):
            values = values.astype(np.float64)
        spread = (
            values.std(axis=1, ddof=1) / count**0.5
            if count > 1
            else np.full((cells, *values.shape[2:]), np.nan)
        )
        found = {
            "": np.asarray(values.mean(axis=1), np.float64),
            "_error": np.asarray(spread, np.float64),
        }
        if self.quantiles:
            found["_quantile"] = np.moveaxis(
                np.quantile(np.asarray(values), self.quantiles, axis=1), 0, 1
            )
        return found


@dataclass(frozen=True)
class Sheet:
    """All cells that share shapes and steps: one choice of the outer axes."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep
    observe: tuple[Observable, ...]
    cells: tuple[tuple[int, ...], ...]  # positions on every axis, outer ones fixed


@dataclass(frozen=True)
class Plan:
    """Everything that defines an ensemble."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep
    observe: tuple[Observable, ...]
    axes: tuple[sweeps.Axis, ...]
    repeats: int
    t: float
    times: Sequence[float] | np.ndarray | None
    frames: int
    matrices: RandomMatrices | None
    seed: int
    dtype: str
    rotate: bool
    settle: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    def sheets(self) -> list[Sheet]:
        """The outer loop."""
        outer = [axis for axis in self.axes if axis.outer]
        found = []
        for pick in itertools.product(*(range(len(axis.values)) for axis in outer)):
            parts = {
                "dynamics": self.dynamics,
                "start": self.start,
                "solver": self.solver,
                "observe": self.observe,
            }
            for axis, k in zip(outer, pick):
                parts = sweeps.put(parts, axis.path, axis.value(k))
            fixed = {id(axis): k for axis, k in zip(outer, pick)}
            ranges = [
                [fixed[id(axis)]] if axis.outer else range(len(axis.values)) for axis in self.axes
            ]
            found.append(Sheet(**parts, cells=tuple(itertools.product(*ranges))))
        return found

    def laws(self, sheet: Sheet) -> list[Dynamics]:
        """The laws of a sheet, each value of each axis once.

        They are built here, and so checked: engines fill in numbers.
        """
        inner = [axis for axis in self.axes if not axis.outer]
        parts = {"dynamics": sheet.dynamics, "observe": sheet.observe}
        for axis in inner:
            parts = sweeps.put(parts, axis.path, axis.value(0))
        each = [
            sweeps.put(parts, axis.path, axis.value(k))
            for axis in inner
            for k in range(len(axis.values))
        ]
        return [one["dynamics"] for one in (parts, *each)]

    def check(self) -> None:
        """Every law must fit the tokens, and every step the times."""
        sheets = self.sheets()
        for sheet in sheets:
            for law in self.laws(sheet):
                check(law, sheet.start, sheet.solver, self.t, self.times, self.frames)
        frames = sorted({len(self.steps(sheet.solver)[0]) for sheet in sheets})
        require(
            len(frames) == 1,
            "frames",
            "at most one for each step, for every h",
            f"{frames} frames",
            f"write {frames[0]}",
        )

    def steps(self, solver: FixedStep) -> tuple[np.ndarray, np.ndarray]:
        """(steps to keep, times to keep) for a solver of this ensemble."""
        steps, times = schedule(solver, self.t, self.times, self.frames)
        return np.asarray(steps), times

    def total_steps(self) -> int:
        return sum(
            len(sheet.cells) * self.repeats * int(self.steps(sheet.solver)[0][-1])
            for sheet in self.sheets()
        )

    def title(self) -> str:
        """What ran, and over what: SelfAttention over beta, d."""
        over = ", ".join(axis.name for axis in self.axes)
        return (
            f"tokenflock: {type(self.dynamics).__name__} over {over}"
            if over
            else f"tokenflock: {self.dynamics!r}"
        )

    def recipe(self) -> dict[str, Any]:
        return {
            "verb": "ensemble",
            "dynamics": self.dynamics,
            "start": self.start,
            "solver": self.solver,
            "observe": list(self.observe),
            "over": {axis.name: axis.values for axis in self.axes},
            "repeats": self.repeats,
            "t": self.t,
            "times": None if self.times is None else [float(one) for one in self.times],
            "frames": self.frames,
            "matrices": self.matrices,
            "seed": self.seed,
            "dtype": self.dtype,
            "rotate": self.rotate,
            "settle": self.settle,
        }

    def job(self, sheet: Sheet) -> Job:
        """The work of a sheet, for an engine.

        A swept threshold decides itself when it is final: nothing settles then.
        """
        inner = [axis for axis in self.axes if not axis.outer]
        paths = tuple((ROLE[axis.path[0]], *axis.path[1:]) for axis in inner)
        laws = self.laws(sheet)
        thresholds = any(axis.path[0] == "observe" for axis in inner)
        random = self.matrices is not None and self.matrices.value is not Value.IDENTITY
        settle = (
            self.settle and not thresholds and not random and all(law.keeps_cones for law in laws)
        )
        parts = cast((laws[0], sheet.solver, sheet.observe), self.dtype)
        return Job(
            *parts, sheet.start.weights(), self.steps(sheet.solver)[0], paths, self.dtype, settle
        )


def _run_sheet(
    plan: Plan, sheet: Sheet, engine: str, memory, summary: Summary, saved: Store, tally: Tally
) -> dict[str, Any]:
    """Run the cells of a sheet that are not done yet, a few whole cells at a time."""
    job = plan.job(sheet)
    turn = plan.rotate and all(law.isotropic for law in plan.laws(sheet))
    end = float(plan.steps(sheet.solver)[1][-1])
    systems = Systems(sheet.dynamics, sheet.start, plan.matrices, plan.seed, plan.dtype, end, turn)
    chosen: Choice = choose(engine, job, systems, plan.repeats * len(sheet.cells), memory)
    steps = int(job.steps[-1])
    todo = [cell for cell in sheet.cells if cell not in saved]
    tally.add((len(sheet.cells) - len(todo)) * plan.repeats * steps)
    group = max(1, chosen.chunk // plan.repeats)
    inner = [axis for axis in plan.axes if not axis.outer]
    where = [k for k, axis in enumerate(plan.axes) if not axis.outer]
    for first in range(0, len(todo), group):
        cells = todo[first : first + group]
        numbers = np.array(
            [np.ravel_multi_index(cell, plan.shape) if plan.shape else 0 for cell in cells]
        )
        swept = [
            np.stack([axis.values[cell[k]] for cell in cells])
            .astype(plan.dtype)
            .repeat(plan.repeats, axis=0)
            for axis, k in zip(inner, where)
        ]
        ids = np.stack(
            [numbers.repeat(plan.repeats), np.tile(np.arange(plan.repeats), len(cells))], axis=-1
        )
        values = _values(chosen, ids, swept, saved, saved.open(cells, plan.repeats), tally, steps)
        found = {
            name + end: one
            for name, whole in values.items()
            for end, one in summary.of(whole, len(cells)).items()
        }
        _check_finite(found, plan)
        for k, cell in enumerate(cells):
            saved.put(cell, {name: one[k] for name, one in found.items()})
        saved.close()
    return {
        "engine": chosen.engine,
        "why": chosen.why,
        "rotated": chosen.rotated,
        "settling": job.delta is not None,
    }


def _fixed(solver: Solver) -> FixedStep:
    """The solver, if its step is fixed."""
    if not isinstance(solver, FixedStep):
        name = type(solver).__name__
        raise UserError(
            f"solver must be one of fixed step, for an ensemble, got {name}; write e.g. RK4(h=0.1)"
        )
    return solver


def _check(
    dynamics: Dynamics,
    observe: Sequence[Observable],
    repeats: int,
    quantiles: Sequence[float],
    matrices: RandomMatrices | None,
) -> None:
    """Refuse what does not go together."""
    require(
        len(observe) > 0,
        "observe",
        "at least one observable",
        "none",
        "write e.g. observe=[PairDensity()]",
    )
    names = [one.name for one in observe]
    require(
        len(set(names)) == len(names),
        "observe",
        "observables of different names",
        names,
        "sweep the parameter with over",
    )
    require_whole("repeats", repeats, 1)
    require(all(0 <= q <= 1 for q in quantiles), "quantiles", "between 0 and 1", list(quantiles))
    if matrices is not None:
        matrices.fill(dynamics, np.zeros((1, 1, 1)), None)


def _values(
    chosen: Choice,
    ids: np.ndarray,
    swept: list[np.ndarray],
    saved: Store,
    group: Group,
    tally: Tally,
    steps: int,
) -> dict[str, Any]:
    """The observables of these systems: those that the store has, and those that run now.

    More than the memory holds run in pieces. What a system does depends on its own key only, so it
    does not matter who ran beside it, nor when.
    """
    rows = group.missing
    known = len(ids) - len(rows)
    if known:
        tally.add(known * steps)
    pieces = [rows[k : k + chosen.chunk] for k in range(0, len(rows), chosen.chunk)]
    split = len(pieces) > 1 or known > 0  # then all meet on the host, else they stay where they are
    parts = []
    for piece in pieces:

        def report(done: np.ndarray, values: Values, piece: np.ndarray = piece) -> None:
            if split or all(isinstance(one, np.ndarray) for one in values.values()):
                kept = {name: np.asarray(one)[done] for name, one in values.items()}
                saved.keep(piece[done], kept)
            tally.add(len(done) * steps)

        values = chosen.run(ids[piece], [one[piece] for one in swept], report)
        parts.append({name: np.asarray(one) for name, one in values.items()} if split else values)
    if not known:
        return parts[0] if len(parts) == 1 else _joined(parts)
    for piece, values in zip(pieces, parts):
        group.put(piece, values)
    return group.values


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _check_finite(values: dict[str, Any], plan: Plan) -> None:
    """Refuse what overflowed.

    Matrices of pairs may hold NaN, for tokens of weight zero; their errors may, for one repeat.
    """
    whole = {one.name for one in plan.observe if not one.dims}
    for name, value in values.items():
        if name.removesuffix("_quantile") in whole and not np.isfinite(value).all():
            raise SimulationError(overflowed(f"{name} of {plan.dynamics!r}", plan.dtype))


def _dataset(
    plan: Plan, summary: Summary, saved: Store, recipe: dict[str, Any], seconds: float
) -> xr.Dataset:
    """The cells, put together on named axes."""
    steps = [plan.steps(sheet.solver) for sheet in plan.sheets()]
    same = all(
        len(one[1]) == len(steps[0][1]) and np.allclose(one[1], steps[0][1]) for one in steps
    )
    frame = (
        ("time", steps[0][1], {"long_name": "time"})
        if same
        else ("time", np.arange(len(steps[0][1])))
    )
    names = tuple(axis.name for axis in plan.axes)
    dims = {one.name: one.dims for one in plan.observe}
    labels = {one.name: one.label for one in plan.observe}
    variables = {}
    for key in next(iter(saved.values())):
        base = next(
            name
            for name in sorted(dims, key=len, reverse=True)
            if key in (name, name + "_error", name + "_quantile")
        )
        lead = ("repeat",) if summary.keep else ("quantile",) if key.endswith("_quantile") else ()
        blocks = [np.asarray(saved[cell][key]) for cell in np.ndindex(*plan.shape)]
        values = np.stack(blocks).reshape(*plan.shape, *blocks[0].shape)
        label = labels[base] + {"_error": ", standard error", "_quantile": ", quantiles"}.get(
            key[len(base) :], ""
        )
        variables[key] = ((*names, *lead, "time", *dims[base]), values, {"long_name": label})
    coords: dict[str, Any] = {axis.name: (axis.name, axis.coordinate) for axis in plan.axes}
    coords |= {"time": frame} | {
        dim: values for one in plan.observe for dim, values in one.coords().items()
    }
    if summary.quantiles and not summary.keep:
        coords["quantile"] = list(summary.quantiles)
    recipe["versions"] = recipes.versions("jax")
    chosen = recipe["chosen"]
    attrs = {
        "title": plan.title(),
        "convention": plan.solver.convention,
        "recipe": recipes.dumps(recipe),
        "engine": f"{chosen['engine']}: {chosen['why']}" if chosen else "stored",
        "device": str(jax.devices()[0]),
        "seconds": round(seconds, 4),
    }
    return xr.Dataset(variables, coords, attrs)

"""`ensemble`: many systems at once, statistics on the way, states never stored."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Unpack

import jax
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.choose import Choice, choose
from tokenflock.engines.job import PASSAGE, Values
from tokenflock.engines.systems import Systems
from tokenflock.errors import SimulationError, overflowed, require
from tokenflock.events.event import Event
from tokenflock.matrices._random import RandomMatrices
from tokenflock.observables.observable import Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.precision import precision
from tokenflock.solvers.euler_maruyama import EulerMaruyama
from tokenflock.solvers.rk4 import RK4
from tokenflock.solvers.solver import Solver
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.options import Options, Settled, settled
from tokenflock.verbs.passages import DIMS, passage_variable, passages
from tokenflock.verbs.plan import Plan, Sheet
from tokenflock.verbs.schedule import When, check_kinds, fixed_step, require_whole
from tokenflock.verbs.store import Group, Store


def ensemble(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    *,
    over: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
    repeats: int = 256,
    t: float = 30.0,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int = 201,
    solver: Solver | None = None,
    observe: Sequence[Observable] = (PairDensity(),),
    until: Event | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Run many systems and return means and standard errors of observables.

    Args:
      dynamics, start, solver, observe: as in `simulate`; the solver has a fixed step (`RK4(h=0.1)`
        unless given).
      over: parameters to sweep, e.g. {"beta": [1, 2, 4], "n": [16, 32]}; each becomes an axis of
        the result.
      repeats: independent systems in each cell.
      t, times, frames: when to observe.
      until: an event whose time is wanted: the result has `first_passage` of every repeat (NaN
        where it did not happen by t), `survival` and what follows from it. Systems run on to t for
        their observables; with observe=[] they stop.
      seed: one random key for each (seed, cell, repeat), whatever the engine, the device or the
        cut of the work.
      options: what is kept of repeats, random matrices, and how to run: see `Options`.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> over = {"beta": [0.5, 1.0]}
    >>> result = ensemble(SelfAttention(), Uniform(n=8, d=3), over=over, repeats=16, t=20, frames=3)
    >>> result.pair_density.dims
    ('beta', 'time')
    """
    observe = check_kinds(dynamics, observe, seed, solver=solver, until=until)
    start = start if isinstance(start, Start) else Given(start)
    solver = solver or (EulerMaruyama(h=0.01) if dynamics.noisy else RK4(h=0.1))
    for observable in observe:
        # what an observable lacks must be there; each system binds its own later
        observable.bind(dynamics)
    chosen = settled(options)
    axes = sweeps.axes(over or {}, dynamics, start, solver, observe, chosen.part)
    summary = Summary(tuple(chosen.quantiles), chosen.keep)
    _check(dynamics, observe, until, repeats, summary.quantiles, chosen.matrices)
    system = dynamics, start, fixed_step(solver), observe
    how = chosen.matrices, seed, chosen.dtype, chosen.rotate, chosen.settle, until, chosen.part
    plan = Plan(*system, tuple(axes), repeats, When(t, times, frames), *how)
    plan.check()
    with ExitStack() as stack:
        store = chosen.store
        kept = store if isinstance(store, Store) else stack.enter_context(Store(store))
        result = _run(plan, summary, kept, chosen)
        if kept is not store:
            kept.remove()
    return result


def _run(plan: Plan, summary: Summary, saved: Store, options: Settled) -> xr.Dataset:
    """All sheets, from where the store has come to."""
    recipe = plan.recipe() | {
        "quantiles": list(summary.quantiles),
        "keep": summary.keep,
        "engine": options.engine,
    }
    tally = Tally(plan.total_steps(), options.progress)
    saved.begin(recipes.dumps(recipe))
    began, notes = clock.perf_counter(), {}
    try:
        with precision(plan.dtype):
            for sheet in plan.sheets():
                notes = _run_sheet(plan, sheet, options, summary, saved, tally)
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
        """So many steps more are done; who watches is told."""
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
        statistics = {
            "": np.asarray(values.mean(axis=1), np.float64),
            "_error": np.asarray(spread, np.float64),
        }
        if self.quantiles:
            statistics["_quantile"] = np.moveaxis(
                np.quantile(np.asarray(values), self.quantiles, axis=1), 0, 1
            )
        return statistics


def _run_sheet(
    plan: Plan, sheet: Sheet, options: Settled, summary: Summary, saved: Store, tally: Tally
) -> dict[str, Any]:
    """Run the cells of a sheet that are not done yet, a few whole cells at a time."""
    job = plan.job(sheet)
    turn = plan.rotate and all(law.isotropic for law in plan.laws(sheet))
    end = float(plan.steps(sheet.solver)[1][-1])
    systems = Systems(sheet.dynamics, sheet.start, plan.matrices, plan.seed, plan.dtype, end, turn)
    count = plan.repeats * len(sheet.cells)
    chosen: Choice = choose(options.engine, job, systems, count, options.memory)
    steps = int(job.steps[-1])
    todo = [cell for cell in sheet.cells if cell not in saved]
    tally.add((len(sheet.cells) - len(todo)) * plan.repeats * steps)
    group = max(1, chosen.chunk // plan.repeats)
    inner = [axis for axis in plan.axes if not axis.outer]
    where = [k for k, axis in enumerate(plan.axes) if not axis.outer]
    for first in range(0, len(todo), group):
        cells = todo[first : first + group]
        swept = [
            np.stack([axis.values[cell[k]] for cell in cells])
            .astype(plan.dtype)
            .repeat(plan.repeats, axis=0)
            for axis, k in zip(inner, where)
        ]
        ids = plan.ids(cells)
        values = _values(chosen, ids, swept, saved, saved.open(cells, plan.repeats), tally, steps)
        passed = values.pop(PASSAGE, None)
        statistics = {
            name + suffix: array
            for name, whole in values.items()
            for suffix, array in summary.of(whole, len(cells)).items()
        }
        if passed is not None:
            passed = np.asarray(passed).reshape(len(cells), plan.repeats, -1) * sheet.solver.h
            statistics |= passages(passed, plan.steps(sheet.solver)[1])
        _check_finite(statistics, plan)
        for k, cell in enumerate(cells):
            saved.put(cell, {name: array[k] for name, array in statistics.items()})
        saved.close()
    return {
        "engine": chosen.engine,
        "why": chosen.why,
        "rotated": chosen.rotated,
        "settling": job.delta is not None,
    }


def _check(
    dynamics: Dynamics,
    observe: Sequence[Observable],
    until: Event | None,
    repeats: int,
    quantiles: Sequence[float],
    matrices: RandomMatrices | None,
) -> None:
    """Refuse what does not go together."""
    require(
        len(observe) > 0 or until is not None,
        "observe",
        "at least one observable, without an event",
        "none",
        "write e.g. observe=[PairDensity()]",
    )
    names = [observable.name for observable in observe]
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
    # with a store all meet on the host, so that a run that was interrupted has the same means to
    # the last digit; without one they stay where they are
    split = len(pieces) > 1 or known > 0 or saved.path is not None
    parts = []
    for piece in pieces:

        def report(done: np.ndarray, values: Values, piece: np.ndarray = piece) -> None:
            if split or all(isinstance(array, np.ndarray) for array in values.values()):
                kept = {name: np.asarray(array)[done] for name, array in values.items()}
                saved.keep(piece[done], kept)
            tally.add(len(done) * steps)

        values = chosen.run(ids[piece], [axis[piece] for axis in swept], report)
        parts.append(
            {name: np.asarray(array) for name, array in values.items()} if split else values
        )
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
    whole = {observable.name for observable in plan.observe if not observable.dims}
    for name, value in values.items():
        if name.removesuffix("_quantile") in whole and not np.isfinite(value).all():
            raise SimulationError(overflowed(f"{name} of {plan.dynamics!r}", plan.dtype))


def _dataset(
    plan: Plan, summary: Summary, saved: Store, recipe: dict[str, Any], seconds: float
) -> xr.Dataset:
    """The cells, put together on named axes."""
    steps = [plan.steps(sheet.solver) for sheet in plan.sheets()]
    same = all(
        len(times) == len(steps[0][1]) and np.allclose(times, steps[0][1]) for _, times in steps
    )
    frame = (
        ("time", steps[0][1], {"long_name": "time"})
        if same
        else ("time", np.arange(len(steps[0][1])))
    )
    names = tuple(axis.name for axis in plan.axes)
    dims = {observable.name: observable.dims for observable in plan.observe}
    labels = {observable.name: observable.label for observable in plan.observe}
    variables = {}
    for key in next(iter(saved.values())):
        blocks = [np.asarray(saved[cell][key]) for cell in np.ndindex(*plan.shape)]
        values = np.stack(blocks).reshape((*plan.shape, *blocks[0].shape))
        if plan.until is not None and key in DIMS:
            variables[key] = passage_variable(key, values, names, plan.until)
            continue
        base = next(
            name
            for name in sorted(dims, key=len, reverse=True)
            if key in (name, name + "_error", name + "_quantile")
        )
        lead = ("repeat",) if summary.keep else ("quantile",) if key.endswith("_quantile") else ()
        label = labels[base] + {"_error": ", standard error", "_quantile": ", quantiles"}.get(
            key[len(base) :], ""
        )
        variables[key] = ((*names, *lead, "time", *dims[base]), values, {"long_name": label})
    coords: dict[str, Any] = {axis.name: (axis.name, axis.coordinate) for axis in plan.axes}
    coords |= {"time": frame} | {
        dim: values for observable in plan.observe for dim, values in observable.coords().items()
    }
    coords |= {} if plan.until is None else plan.until.levels
    if summary.keep or plan.until is not None:
        coords["repeat"] = plan.ids([(0,) * len(plan.shape)])[:, 1]
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

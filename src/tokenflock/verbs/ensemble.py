"""`ensemble`: many systems at once, statistics on the way, states never stored."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.precision import precision
from tokenflock.solvers.solver import Solver
from tokenflock.starts.start import Start
from tokenflock.sweeps.unfinished import Group
from tokenflock.verbs.accuracy import judged
from tokenflock.verbs.asked import Request, asked
from tokenflock.verbs.cells import Tally, bench
from tokenflock.verbs.filling import to_store
from tokenflock.verbs.options import Options
from tokenflock.verbs.schedule import when_to_look


def ensemble(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    *,
    over: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
    repeats: int = 256,
    t: float | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int | None = None,
    solver: Solver | None = None,
    observe: Observable | Sequence[Observable] = (PairDensity(),),
    until: Event | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Run many systems and return means and standard errors of observables.

    Args:
      dynamics, start, observe: as in `simulate`.
      solver: used as it is, with a warning where its step is too long. Unless given, `RK4(h=0.1)`
        (`EulerMaruyama(h=0.01)` with noise) in the cells where that is accurate to `tolerance`, and
        steps of controlled length in others. A cell where no such steps are accurate is refused.
      over: parameters to sweep, e.g. {"beta": [1, 2, 4], "n": [16, 32]}; each becomes an axis of
        the result.
      repeats: independent systems in each cell.
      t, times, frames: when to observe, as in `simulate`.
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
    when = when_to_look(t, times, frames)
    wanted = asked(
        dynamics, start, over or {}, repeats, when, solver, observe, until, seed, options
    )
    out = wanted.options.out
    result = in_memory(wanted) if out is None else to_store(wanted, out)
    return judged(result, wanted.plan, stored=out is not None)


def in_memory(wanted: Request) -> xr.Dataset:
    """All cells, sheet by sheet, a few whole cells at a time."""
    plan, options = wanted.plan, wanted.options
    tally = Tally(plan.total_steps(), options.progress)
    began, notes, done = clock.perf_counter(), {}, {}
    with precision(plan.dtype):
        for sheet in plan.sheets():
            ready, todo = bench(plan, sheet, options.engine, options.memory), list(sheet.cells)
            notes, at_once = ready.notes, max(1, ready.chosen.chunk // plan.repeats)
            for first in range(0, len(todo), at_once):
                cells = todo[first : first + at_once]
                group = Group(np.zeros(len(cells) * plan.repeats, bool))
                values = ready.run(cells, wanted.summary, group, None, tally)
                for k, cell in enumerate(cells):
                    done[cell] = {name: array[k] for name, array in values.items()}
    form = wanted.form(list(next(iter(done.values()))), notes)
    variables: dict[str, Any] = {}
    for name, (dims, attrs) in form.variables.items():
        values = np.stack([np.asarray(done[cell][name]) for cell in np.ndindex(*plan.shape)])
        variables[name] = dims, values.reshape((*plan.shape, *values.shape[1:])), attrs
    attrs = {**form.attrs, "seconds": round(clock.perf_counter() - began, 4)}
    return xr.Dataset(variables, dict(form.coords), attrs)

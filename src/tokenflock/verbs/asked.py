"""What is asked of an ensemble, checked: its plan, what is kept of repeats, and how it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import PASSAGE
from tokenflock.engines.memory import require_memory
from tokenflock.errors import all_numbers, require, require_switch, require_whole
from tokenflock.events.event import Event
from tokenflock.matrices._random import RandomMatrices
from tokenflock.observables.observable import Observable
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import Solver
from tokenflock.starts.start import Start
from tokenflock.sweeps.store import Form
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.accuracy import (
    DISTANCE,
    ERROR,
    LABELS,
    nominal,
    require_tolerance,
    schemes,
)
from tokenflock.verbs.cells import Summary
from tokenflock.verbs.options import Choices, Options, settled
from tokenflock.verbs.passages import DIMS, passage_variable
from tokenflock.verbs.plan import Plan
from tokenflock.verbs.prepare import as_start
from tokenflock.verbs.resolution import resolving
from tokenflock.verbs.schedule import When, check_kinds, fixed_step

_OVER = "write e.g. over={'beta': [1.0, 2.0]}"
_DERIVED = {"_error": ", standard error", "_quantile": ", quantiles"} | {
    ending: LABELS[ending] for ending in (ERROR, DISTANCE)
}


@dataclass(frozen=True)
class Request:
    """An ensemble that makes sense."""

    plan: Plan
    summary: Summary
    options: Choices

    def recipe(self) -> dict[str, Any]:
        """What was asked for, as a file keeps it."""
        return self.plan.recipe() | {
            "quantiles": list(self.summary.quantiles),
            "keep": self.summary.keep,
            "engine": self.options.engine,
        }

    def mark(self) -> str:
        """What tells this ensemble from any other."""
        return hashlib.sha256(recipes.dumps(self.recipe()).encode()).hexdigest()

    def told(self) -> dict[str, Any]:
        """Notes on the result that are known before anything has run."""
        return {
            "title": self.plan.title(),
            "convention": self.plan.solver.convention,
            "recipe": recipes.dumps(self.recipe() | {"versions": recipes.versions("jax")}),
        }

    def form(self, names: Sequence[str], notes: Mapping[str, Any]) -> Form:
        """The variables of the result, its coordinates, and notes on how it ran."""
        plan = self.plan
        axes = tuple(axis.name for axis in plan.axes)
        recipe = self.recipe() | {"chosen": dict(notes), "versions": recipes.versions("jax")}
        attrs = self.told() | {
            "recipe": recipes.dumps(recipe),
            "engine": f"{notes['engine']}: {notes['why']}" if notes else "stored",
            "device": str(jax.devices()[0]),
        }
        return Form({name: self._variable(name, axes) for name in names}, self._coords(), attrs)

    def _variable(self, key: str, axes: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The axes of a variable and what it is."""
        until = self.plan.until
        if key in LABELS:
            attrs = {"long_name": LABELS[key]}
            if key == "scheme":
                solvers = schemes(self.plan.dynamics, self.plan.tolerance)
                attrs["solvers"] = ", ".join(f"{k}: {each!r}" for k, each in enumerate(solvers))
            return axes, attrs
        if until is not None and key in (PASSAGE + ERROR, PASSAGE + DISTANCE):
            what = LABELS[key.removeprefix(PASSAGE)]
            return (*axes, *until.levels), {"long_name": f"time of first passage{what}"}
        if until is not None and key in DIMS:
            dims, _, attrs = passage_variable(key, np.zeros(0), axes, until)
            return dims, attrs
        known = {observable.name: observable for observable in self.plan.observe}
        base = next(
            name
            for name in sorted(known, key=len, reverse=True)
            if key in (name, *(name + end for end in _DERIVED))
        )
        stepping = key.endswith((ERROR, DISTANCE))
        kept = (
            None
            if stepping
            else "repeat"
            if self.summary.keep
            else "quantile"
            if key.endswith("_quantile")
            else None
        )
        lead = () if kept is None else (kept,)
        label = known[base].label + _DERIVED.get(key[len(base) :], "")
        return (*axes, *lead, "time", *known[base].dims), {"long_name": label}

    def _coords(self) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]:
        plan = self.plan
        times = [plan.steps(solver)[1] for solver, _ in plan.solvers()]
        same = all(len(each) == len(times[0]) and np.allclose(each, times[0]) for each in times)
        frame = (times[0], {"long_name": "time"}) if same else (np.arange(len(times[0])), {})
        coords = {axis.name: (axis.coordinate, {}) for axis in plan.axes} | {"time": frame}
        for observable in plan.observe:
            coords |= {dim: (values, {}) for dim, values in observable.coords().items()}
        if plan.until is not None:
            coords |= {dim: (values, {}) for dim, values in plan.until.levels.items()}
        if self.summary.keep or plan.until is not None:
            coords["repeat"] = plan.ids([(0,) * len(plan.shape)])[:, 1], {}
        if self.summary.quantiles and not self.summary.keep:
            coords["quantile"] = np.array(self.summary.quantiles), {}
        return {
            name: ((name,), np.asarray(values), attrs) for name, (values, attrs) in coords.items()
        }


def asked(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    over: Mapping[str, Sequence[Any] | np.ndarray],
    repeats: int,
    when: When,
    solver: Solver | None,
    observe: Observable | Sequence[Observable],
    until: Event | None,
    seed: int,
    options: Options,
) -> Request:
    """An ensemble, or an error that says why it makes no sense. See `ensemble`."""
    observe = check_kinds(dynamics, observe, seed, solver=solver, until=until)
    start = as_start(dynamics, start)
    swept_steps = any(name in ("h", "step", "solver.h") for name in over)
    given = solver is not None or swept_steps
    solver = solver or nominal(dynamics)
    for observable in observe:
        # what an observable lacks must be there; each system binds its own later
        observable.bind(dynamics)
    require(isinstance(over, Mapping), "over", "values by name", f"{over!r:.80}", _OVER)
    chosen = settled(options)
    require_tolerance(chosen.tolerance, given)
    for name in ("keep", "rotate", "settle"):
        require_switch(name, getattr(chosen, name))
    swept = sweeps.axes(over, dynamics, start, solver, observe, chosen.part)
    shares = all_numbers("quantiles", chosen.quantiles)
    require(shares.ndim == 1, "quantiles", "a list such as [0.1, 0.9]", f"{chosen.quantiles!r:.80}")
    both = chosen.keep and shares.size > 0
    instead = "take them of the repeats: result.quantile([0.1, 0.9], 'repeat')"
    require(not both, "quantiles", "left out with keep=True", chosen.quantiles, instead)
    summary = Summary(tuple(shares.tolist()), chosen.keep)
    _check(dynamics, observe, until, repeats, summary.quantiles, chosen.matrices)
    if not isinstance(solver, Adaptive):
        solver = fixed_step(solver)
    system = dynamics, start, solver, observe
    dtype = resolving(chosen.dtype, observe, until, swept)
    how = chosen.matrices, seed, dtype, chosen.rotate, chosen.settle, until, chosen.part
    plan = Plan(*system, tuple(swept), repeats, when, *how, chosen.tolerance, given)
    plan.check()
    return Request(plan, summary, chosen)


def check_repeats(repeats: int) -> None:
    """Refuse no systems, and more of them than can be numbered."""
    require_whole("repeats", repeats, 1)
    require_memory(32.0 * repeats, f"an ensemble of {repeats:,} repeats", "take fewer repeats")


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
    check_repeats(repeats)
    require(all(0 <= q <= 1 for q in quantiles), "quantiles", "between 0 and 1", list(quantiles))
    if matrices is not None:
        known = isinstance(matrices, RandomMatrices)
        wanted = "random matrices such as RandomMatrices()"
        require(known, "matrices", wanted, f"{matrices!r:.80}")
        matrices.fill(dynamics, np.zeros((1, 1, 1)), None)

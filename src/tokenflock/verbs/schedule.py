"""When to look: the times, or numbers of steps, at which a run is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.fast import Fast
from tokenflock.engines.memory import require_memory
from tokenflock.errors import (
    UserError,
    all_numbers,
    is_number,
    one_schedule,
    require,
    require_kind,
    require_number,
    require_whole,
)
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable, require_distinct
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.start import Start

LAST = 30.0  # the final time unless one is given
FRAMES = 201  # how many times are kept unless they are given


class When(NamedTuple):
    """When to look: at `times`, or at `frames` equal ones up to t."""

    t: float
    times: Sequence[float] | np.ndarray | None
    frames: int

    def check(self) -> None:
        """Refuse times that are none."""
        require_number("t", self.t, "write e.g. t=30")
        fine = math.isfinite(self.t) and self.t > 0
        require(fine, "t", "a positive final time", self.t, "write e.g. t=30")
        require_whole("frames", self.frames, 2)
        if self.times is None:
            return
        array = all_numbers("times", self.times)
        rising = array.ndim == 1 and array.size > 0 and bool((np.diff(array) > 0).all())
        fine = rising and array[0] >= 0 and 0 < array[-1] < np.inf
        shown = f"{array.ravel().tolist()!r:.80}"
        require(bool(fine), "times", "increasing times from 0 on", shown)

    def recipe(self) -> dict[str, Any]:
        """The same as data."""
        times = None if self.times is None else [float(time) for time in self.times]
        return {"t": self.t, "times": times, "frames": self.frames}


def when_to_look(
    t: float | None, times: Sequence[float] | np.ndarray | None, frames: int | None
) -> When:
    """Return when to look, with defaults for what is not given; raise if options contradict."""
    last, count = one_schedule(t, times, frames, LAST, FRAMES)
    return When(last, times, count)


def schedule(
    solver: Solver, t: float, times: Sequence[float] | np.ndarray | None, frames: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """(steps to keep, times to keep).

    The first is always the start. Steps are None for an adaptive solver.
    """
    _holdable(frames if times is None else len(times))
    if isinstance(solver, Adaptive):
        keep = np.linspace(0, t, frames) if times is None else np.asarray(times, dtype=float)
        return None, keep if keep[0] == 0 else np.concatenate([[0.0], keep])
    h = fixed_step(solver).h
    if times is None:
        _countable(t / h, h)
        total = max(1, round(t / h))
        fits = abs(total * h - t) <= 1e-6 * max(t, h)
        require(fits, "t", f"a multiple of the step h = {h:g}", t, f"write t={total * h:g}")
        steps = np.unique(np.round(np.linspace(0, total, min(frames, total + 1))).astype(int))
    else:
        exact = np.asarray(times, dtype=float) / h
        _countable(float(exact[-1]), h)
        steps = np.unique(np.concatenate([[0], np.round(exact)]).astype(int))
        fits = bool(np.all(np.abs(exact - np.round(exact)) <= 1e-6 * np.maximum(exact, 1)))
        require(
            fits,
            "times",
            f"multiples of the step h = {h:g}",
            f"{np.asarray(times).tolist()!r:.80}",
            "choose other times or another step",
        )
    return steps, steps * h


def _countable(steps: float, h: float) -> None:
    """Refuse more steps than engines count."""
    require(
        steps < 2**31,
        "h",
        "a step of which fewer than 2^31 lead to the end",
        f"{h:g}, of which {steps:.4g} do",
        f"write e.g. h={h * steps / 1e6:.1g}",
    )


def _holdable(frames: int) -> None:
    require_memory(32.0 * frames, f"a run of {frames:,} frames", "keep fewer frames")


def check_kinds(
    dynamics: Dynamics,
    observe: Observable | Sequence[Observable],
    seed: int,
    *,
    solver: Solver | None = None,
    until: Event | None = None,
) -> tuple[Observable, ...]:
    """Refuse what is no law, solver, event, observable or seed, before anything is asked of it.

    Returns the observables: a single one counts as a list of one.
    """
    require_kind("dynamics", Dynamics, dynamics)
    require_kind("solver", Solver | None, solver)
    require_kind("until", Event | None, until)
    require_kind("observe", Observable | Sequence[Observable], observe)
    observables = (observe,) if isinstance(observe, Observable) else tuple(observe)
    require_distinct(observables)
    whole = is_number(seed) and isinstance(seed, (int, np.integer)) and 0 <= seed < 2**63
    require(whole, "seed", "a whole number from 0 to 2^63 - 1", repr(seed), "write e.g. seed=0")
    return observables


def check(
    dynamics: Dynamics,
    start: Start,
    solver: Solver,
    t: float,
    times: Sequence[float] | np.ndarray | None,
    frames: int,
) -> None:
    """Refuse tokens that do not fit the law, times that are none, and solvers that cannot follow
    the law.
    """
    n, d = start.shape
    require_memory(
        8.0 * n * (d + 1), f"a system of n = {n:,}, d = {d:,}", "take fewer tokens or dimensions"
    )
    name = type(dynamics).__name__
    require(
        dynamics.dimension in (None, d),
        "d",
        f"{dynamics.dimension}, as {name} has it",
        d,
        f"write d={dynamics.dimension}",
    )
    require(
        dynamics.particles in (None, n),
        "n",
        f"{dynamics.particles}, as {name} has it",
        n,
        f"write n={dynamics.particles}",
    )
    for law in dynamics.layers_around:
        if isinstance(law, Fast):
            law.check_dimension(d)
    When(t, times, frames).check()
    if dynamics.noisy:
        require(
            solver.takes_noise,
            "solver",
            f"one that takes noise, for {name}",
            type(solver).__name__,
            "use EulerMaruyama",
        )
    if isinstance(solver, Adaptive) and solver.method.order > 5:
        require(
            dynamics.smooth,
            "solver",
            f"of low order, since {name} jumps",
            f"Adaptive(method={solver.method.name.lower()!r})",
            "use Adaptive(method='tsit5')",
        )


def fixed_step(solver: Solver) -> FixedStep:
    """The solver, if its step is fixed."""
    if not isinstance(solver, FixedStep):
        name = type(solver).__name__
        raise UserError(
            f"solver must be one of fixed step, for an ensemble, got {name}; write e.g. RK4(h=0.1)"
        )
    return solver

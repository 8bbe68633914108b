"""When to look: the times, or numbers of steps, at which a run is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenflock.errors import require
from tokenflock.solvers.solver import FixedStep, Solver


def schedule(solver: Solver, t: float, times: Sequence[float] | None, frames: int) -> tuple[np.ndarray | None, np.ndarray]:
    """(steps to keep, times to keep); the first is always the start. Steps are None for an adaptive solver."""
    if not isinstance(solver, FixedStep):
        keep = np.linspace(0, t, frames) if times is None else np.asarray(times, dtype=float)
        return None, keep if keep[0] == 0 else np.concatenate([[0.0], keep])
    h = solver.h
    if times is None:
        total = max(1, round(t / h))
        fits = abs(total * h - t) <= 1e-6 * max(t, h)
        require(fits, "t", f"a multiple of the step h = {h:g}", t, f"write t={total * h:g}")
        steps = np.unique(np.round(np.linspace(0, total, min(frames, total + 1))).astype(int))
    else:
        exact = np.asarray(times, dtype=float) / h
        steps = np.unique(np.concatenate([[0], np.round(exact)]).astype(int))
        fits = bool(np.all(np.abs(exact - np.round(exact)) <= 1e-6 * np.maximum(exact, 1)))
        require(fits, "times", f"multiples of the step h = {h:g}", times, "choose other times or another step")
    return steps, steps * h

"""How fast k equal clusters leave the regular polygon, measured."""

from __future__ import annotations

import numpy as np

from tokenflock import simulate
from tokenflock.dynamics import SelfAttention
from tokenflock.solvers import RK4
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts import Given
from tokenflock.theory import polygon_lifetime

NUDGE, GROWTH = 1e-6, 100.0


def lifetime(k: int, beta: float) -> float:
    """What theory says: 1 / max_p lambda_p."""
    return float(polygon_lifetime(k, beta))


def growth_rate(k: int, beta: float, solver: FixedStep | None = None) -> float:
    """The rate at which the fastest mode grows: corners are nudged along it, and the slope of the
    logarithm is taken.

    One token stands for each cluster. Unless a solver is given, the flow is followed by RK4 with a
    hundred steps in a lifetime.
    """
    solver = solver or RK4(h=lifetime(k, beta) / 100)
    j = np.arange(k)
    mode, corner = np.cos(2 * np.pi * (k // 2) * j / k), np.exp(2j * np.pi * j / k)
    nudged = corner * np.exp(1j * NUDGE * mode)
    steps = int(np.ceil(np.log(GROWTH) * lifetime(k, beta) / solver.h))
    start = Given(np.stack([np.real(nudged), np.imag(nudged)], axis=-1))
    run = simulate(SelfAttention(beta=beta), start, t=steps * solver.h, frames=21, solver=solver)
    moved = np.angle((run.x.values[..., 0] + 1j * run.x.values[..., 1]) / corner)
    return float(np.polyfit(run.time.values, np.log(moved @ mode / (mode @ mode)), 1)[0])

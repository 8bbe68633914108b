"""How far a measure is from optimal, in one number."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from tokenflock.frozen import choice
from tokenflock.meanfield.measures import weighted_points
from tokenflock.meanfield.potential import Goal, Numbers, on_sphere, potential, symmetric

CANDIDATES, POLISHED = 2048, 8


def optimality_gap(
    measure: xr.Dataset | Numbers, D: Numbers, goal: Goal = Goal.MINIMISE, w: Numbers | None = None
) -> float:
    """First-order optimality gap of a measure for the energy E(mu) = int int e^{<x, D y>} dmu dmu.

        minimise:  E(mu) - min_S V_mu,     maximise:  max_S V_mu - E(mu),
        V_mu(x) = int e^{<x, D y>} dmu(y)

    never negative, and zero exactly where no mass can be moved anywhere with a gain of first order.
    Where D >= 0, E is convex, and a minimiser's energy lies at most twice the gap below E(mu). The
    extremum over the sphere is sought from many points, each improved to rounding. Source: first
    variation of the energy of arXiv 2501.03096.

    measure: tokens (n, d) with weights w, or the last frame of a result of `simulate`, `evolve` (on
    the circle) or an optimiser.

    >>> angles = np.pi * np.arange(8) / 4
    >>> # eight points: nearly uniform
    >>> round(optimality_gap(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.eye(2)), 7)
    4e-07
    """
    D, goal = symmetric(D), choice(Goal, goal, "goal")
    x, w = weighted_points(measure, w)
    V = potential(x, x, w, D)
    best = extreme(x, w, D, goal)
    return max(0.0, float(goal.sign * (w @ V - best)))


def extreme(x: Numbers, w: Numbers, D: Numbers, goal: Goal) -> float:
    """min_S V (minimise) or max_S V (maximise)."""
    d = x.shape[1]
    random = on_sphere(np.random.default_rng(0).normal(size=(CANDIDATES, d)))
    axes = np.linalg.eigh(D)[1].T
    q = np.concatenate([random, axes, -axes, x[:: max(1, len(x) // CANDIDATES)]])
    values = goal.sign * potential(q, x, w, D)
    first = np.argsort(values)[:POLISHED]
    return goal.sign * min(
        [float(values[first[0]]), *(_polish(q[i], x, w, D, goal.sign) for i in first)]
    )


def _polish(q: Numbers, x: Numbers, w: Numbers, D: Numbers, sign: float) -> float:
    """The local minimum of sign V next to q."""

    def function(y: Numbers) -> tuple[float, Numbers]:
        q, size = on_sphere(y), np.linalg.norm(y)
        terms = w * np.exp(x @ (D @ q))
        G = D @ (terms @ x)
        return sign * terms.sum(), sign * (G - (G @ q) * q) / size

    return float(
        minimize(function, q, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-13}).fun
    )

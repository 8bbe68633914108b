"""Mirror descent (exponentiated gradient) for densities on a grid: implicit where the energy is
convex, accelerated and explicit where it is not.

Explicit steps cannot be longer than the stiffest mode allows, and modes of high degree, which
hardly matter to the energy, would need thousands of them.
"""

from __future__ import annotations

import numpy as np

from tokenflock.meanfield.implicit_descent import descend_implicitly, masses
from tokenflock.meanfield.potential import Goal, Numbers

GROWTH = 1.25  # of the step after each one that was short enough


def descend(
    x: Numbers, g: Numbers, D: Numbers, goal: Goal, tilt: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, Numbers]:
    """(density relative to the uniform one, energies on the way) for nodes x with weights g, from
    density ~ e^tilt.
    """
    if goal is Goal.MINIMISE and float(np.linalg.eigvalsh(D).min()) >= 0:
        w, energies = descend_implicitly(x, g, D, tilt, steps, tolerance)
    else:
        K = goal.sign * np.exp(x @ D @ x.T)
        p, energies = _explicit(K, g, tilt, steps, tolerance)
        w = masses(p, g)
    return w / g, goal.sign * np.asarray(energies)


def _explicit(
    K: Numbers, g: Numbers, p: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, list[float]]:
    """(log-density, energies) by accelerated explicit steps.

    A step from log-density p with potential V is p - step V. It is short enough if the energy lies
    below its model, E(new) <= E + 2 <V, new - old> + KL(new | old) / step, else it is halved.
    Momentum is Nesterov's, in the log-density, and is dropped when the energy rises.
    """
    before, step, age, energies = p, 1 / (2 * np.ptp(K)), 0, []
    w = masses(p, g)
    for _ in range(steps):
        V = K @ w
        E = float(w @ V)
        energies.append(E)
        if E - V.min() < tolerance:
            break
        look = p + age / (age + 3) * (p - before)
        u = masses(look, g)
        V = K @ u
        while True:
            new = look - step * (V - V.min())
            v = masses(new, g)
            after = float(v @ (K @ v))
            model = float(u @ V) + 2 * float(V @ (v - u)) + _divergence(v, u) / step
            if after <= model + 1e-15 * abs(after) or step < 1e-12:
                break
            step /= 2
        if after > E and age > 0:
            before, age = p, 0  # the momentum led uphill: look again without it
            continue
        before, p, w, age, step = p, new, v, age + 1, step * GROWTH
    return p, energies


def _divergence(v: Numbers, u: Numbers) -> float:
    """KL(v | u)."""
    there = (v > 0) & (u > 0)
    return float(np.sum(v[there] * np.log(v[there] / u[there])))

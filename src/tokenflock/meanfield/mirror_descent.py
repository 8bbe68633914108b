"""Accelerated mirror descent (exponentiated gradient) for densities on a grid."""

from __future__ import annotations

import numpy as np

from tokenflock.meanfield.potential import Goal, Numbers

GROWTH = 1.25  # of the step after each one that was short enough


def descend(
    x: Numbers, g: Numbers, D: Numbers, goal: Goal, tilt: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, Numbers]:
    """(density relative to the uniform one, energies on the way) for nodes x with weights g, from
    density ~ e^tilt.

    A step from log-density p with potential V is p - step V. It is short enough if the energy lies
    below its model, E(new) <= E + 2 <V, new - old> + KL(new | old) / step, else it is halved.
    Momentum is Nesterov's, in the log-density, and is dropped when the energy rises.
    """
    K = np.exp(x @ D @ x.T)
    sign = goal.sign
    p = tilt - np.max(tilt)
    before, step, age, energies = p, 1 / (2 * np.ptp(K)), 0, []
    w = _masses(p, g)
    for _ in range(steps):
        V = sign * (K @ w)
        E = float(w @ V)
        energies.append(sign * E)
        if E - V.min() < tolerance:
            break
        look = p + age / (age + 3) * (p - before)
        u = _masses(look, g)
        V = sign * (K @ u)
        while True:
            new = look - step * (V - V.min())
            v = _masses(new, g)
            after = float(sign * (v @ (K @ v)))
            model = float(u @ V) + 2 * float(V @ (v - u)) + _divergence(v, u) / step
            if after <= model + 1e-15 * abs(after) or step < 1e-12:
                break
            step /= 2
        if after > E and age > 0:
            before, age = p, 0  # the momentum led uphill: look again without it
            continue
        before, p, w, age, step = p, new, v, age + 1, step * GROWTH
    return w / g, np.asarray(energies)


def _masses(p: Numbers, g: Numbers) -> Numbers:
    w = g * np.exp(p - p.max())
    return w / w.sum()


def _divergence(v: Numbers, u: Numbers) -> float:
    """KL(v | u)."""
    there = (v > 0) & (u > 0)
    return float(np.sum(v[there] * np.log(v[there] / u[there])))

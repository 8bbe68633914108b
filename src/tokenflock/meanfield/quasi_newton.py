"""L-BFGS on the product of spheres, and Barzilai-Borwein steps for the last digits."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from tokenflock.meanfield.potential import Goal, Numbers, energy_and_gradient, on_sphere

MEMORY = 20  # pairs of steps and gradients that L-BFGS keeps
PATIENCE = 25  # steps without a smaller gradient after which the last digits are reached


class Optimum(NamedTuple):
    """Where an optimiser ended, and its way there."""

    x: Numbers
    residual: float  # root mean square over tokens of n grad E
    energies: Numbers  # of every evaluation
    seconds: Numbers  # wall-clock time at which it was there


def optimise(x: Numbers, D: Numbers, goal: Goal, steps: int, tolerance: float) -> Optimum:
    """A local optimum of the energy of equal tokens, starting at x.

    L-BFGS runs in free coordinates y with x = y/|y|, in which the energy is constant along rays:
    the gradient is tangent, |y| only grows, and the sphere needs no constraint. It stops where the
    energy no longer changes in rounding; gradients are still exact there, and steps that use
    nothing else go on.
    """
    energies: list[float] = []
    seconds: list[float] = []
    began = perf_counter()

    def function(flat: Numbers) -> tuple[float, Numbers]:
        y = flat.reshape(x.shape)
        size = np.linalg.norm(y, axis=1, keepdims=True)
        E, G = energy_and_gradient(y / size, D)
        energies.append(E)
        seconds.append(perf_counter() - began)
        return goal.sign * len(x) * E, goal.sign * (G / size).ravel()

    limits = {
        "maxiter": steps,
        "maxfun": 2 * steps,
        "maxcor": MEMORY,
        "ftol": 0.0,
        "gtol": tolerance,
    }
    optimum = minimize(function, x.ravel(), jac=True, method="L-BFGS-B", options=limits)
    x, residual = _last_digits(on_sphere(optimum.x.reshape(x.shape)), D, goal, tolerance)
    return Optimum(x, residual, np.asarray(energies), np.asarray(seconds))


def _size(G: Numbers) -> float:
    return float(np.sqrt(np.mean(np.sum(G * G, axis=1))))


def _last_digits(x: Numbers, D: Numbers, goal: Goal, tolerance: float) -> tuple[Numbers, float]:
    """Barzilai-Borwein steps while they make the gradient smaller; the best point met."""
    G = goal.sign * energy_and_gradient(x, D)[1]
    best, least, step, waited = x, _size(G), 0.1, 0
    while least > tolerance / 10 and waited < PATIENCE:
        new = on_sphere(x - step * G)
        later = goal.sign * energy_and_gradient(new, D)[1]
        s, y = new - x, later - G
        curvature = np.sum(s * y)
        step = float(np.sum(s * s) / curvature) if curvature > 0 else 0.1
        x, G, waited = new, later, waited + 1
        if _size(G) < least:
            best, least, waited = x, _size(G), 0
    return best, least

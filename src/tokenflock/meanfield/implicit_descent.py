"""Implicit mirror descent for a convex energy: steps of any length, solved in few unknowns.

A step from the log-density p is q = p - step V(q) + constant, the proximal point method with the
entropy as distance: the energy falls however long the step, and the longer the steps the faster it
converges. The potential V = K w of masses w lies in the span of few features, K = F F^T, and q is
found there, as the minimum of a smooth convex function of one number for each feature.
"""

from __future__ import annotations

import numpy as np

from tokenflock.meanfield.potential import Numbers

GROWTH, CAREFUL = 8.0, 2.0  # of the step after each that was solved; after one that was not
NEWTON = 60  # iterations in which a step is solved
SOLVED = 1e-10  # by how much the function of a solved step may still fall
PATIENCE = 12  # steps without a smaller gap after which rounding is what is left
LEAST = -30.0  # a log-density below is taken for this one: who is nothing could never come back


def descend_implicitly(
    x: Numbers, g: Numbers, D: Numbers, p: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, list[float]]:
    """(masses, energies on the way) for D >= 0, nodes x with weights g, from density ~ e^p."""
    K, F = np.exp(x @ D @ x.T), features(x, D)
    best = masses(p, g)
    least, energies = gap(K, best), [float(best @ K @ best)]
    step, grow, waited = 1 / max(float(np.ptp(K)), 1e-300), GROWTH, 0
    while len(energies) < steps and least >= tolerance and waited < PATIENCE:
        q, waited = leap(F, g, np.maximum(p, LEAST), step), waited + 1
        w = best if q is None else masses(q, g)
        energy = float(w @ K @ w)
        if q is None or energy > energies[-1] * (1 + 1e-12):  # not solved, or only in rounding
            step, grow = step / GROWTH, CAREFUL
            continue
        p, step = q, step * grow
        energies.append(energy)
        if gap(K, w) < least:
            best, least, waited = w, gap(K, w), 0
    return best, energies


def features(x: Numbers, D: Numbers) -> Numbers:
    """F (points, features) with F F^T = e^{<x, D y>}, to the rounding of each entry.

    The kernel is a Gaussian, e^{-<x-y, D(x-y)>/2}, between the factors e^{<x, D x>/2} of its
    points. Its Cholesky factor, the largest pivot first, ends after as many columns as matter.
    """
    half = 0.5 * np.sum((x @ D) * x, axis=1)
    G = np.exp(x @ D @ x.T - half[:, None] - half)
    left, F = np.ones(len(x)), np.zeros((len(x), 0))
    while F.shape[1] < len(x) and left.max() > 1e-16:
        k = int(np.argmax(left))
        column = (G[:, k] - F @ F[k]) / np.sqrt(left[k])
        F, left = np.column_stack([F, column]), left - column**2
        left[k] = 0.0
    return F * np.exp(half)[:, None]


def leap(F: Numbers, g: Numbers, p: Numbers, step: float) -> Numbers | None:
    """The log-density q with q + step V(q) = p + constant, V(q) = F F^T w(q); None where it does
    not come.

    With the mean m of the features under e^p and f = F - m, what is sought is q = p - step F m - f
    eta, where eta minimises log sum g e^q + |eta|^2 / 2 step: Newton's method, damped.
    """
    m = F.T @ masses(p, g)
    f, V = F - m, F @ m
    base, eta = p - step * (V - V.min()), np.zeros(F.shape[1])
    best, least, before = None, np.inf, np.inf
    for _ in range(NEWTON):
        q = base - f @ eta
        w = masses(q, g)
        slope = eta / step - f.T @ w
        spread = f - f.T @ w
        curvature = (spread.T * w) @ spread
        curvature[np.diag_indices_from(curvature)] += 1 / step
        try:
            move = -np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return None
        fall = -float(slope @ move)  # twice what a full step gains
        if not np.isfinite(fall):
            return None
        if fall < least:
            best, least = q, fall
        if fall < 1e-22 or (fall < SOLVED and fall > before / 4):
            break
        share = _damped(q + np.log(g), spread @ move, fall, float(move @ move) / step)
        eta, before = eta + share * move, fall
    return None if best is None or least > SOLVED else best - best.max()


def _damped(logs: Numbers, along: Numbers, fall: float, bend: float) -> float:
    """The share of a move after which log sum e^logs - ... has fallen as it should."""
    share, here = 1.0, _log_sum(logs)
    while fall > 1e-6 and share > 1e-9:
        change = _log_sum(logs - share * along) - here - share * fall + share**2 * bend / 2
        if change <= -0.01 * share * fall:
            break
        share /= 2
    return share


def _log_sum(logs: Numbers) -> float:
    top = float(logs.max())
    return top + float(np.log(np.sum(np.exp(logs - top))))


def masses(p: Numbers, g: Numbers) -> Numbers:
    """The masses of nodes with weights g for a density ~ e^p."""
    w = g * np.exp(p - p.max())
    return w / w.sum()


def gap(K: Numbers, w: Numbers) -> float:
    """How much lower than the energy the potential falls, over the nodes."""
    V = K @ w
    return float(w @ V - V.min())

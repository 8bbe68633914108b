"""Mirror descent (exponentiated gradient) for densities on a grid: accelerated, then implicit.

Explicit steps cannot be longer than the stiffest mode allows, and modes of high degree, which
hardly matter to the energy, need thousands of them. Where the energy is convex, implicit steps of
any length finish the work.
"""

from __future__ import annotations

import numpy as np

from tokenflock.meanfield.potential import Goal, Numbers

GROWTH = 1.25  # of the step after each one that was short enough
EXPLICIT = 300  # steps of accelerated descent before implicit ones
LEAP = 8.0  # growth of an implicit step after each that was solved
NEWTON = 30  # iterations in which an implicit step is solved
TRIES = 30  # implicit steps at most


def descend(
    x: Numbers, g: Numbers, D: Numbers, goal: Goal, tilt: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, Numbers]:
    """(density relative to the uniform one, energies on the way) for nodes x with weights g, from
    density ~ e^tilt.

    A step from log-density p with potential V is p - step V. It is short enough if the energy lies
    below its model, E(new) <= E + 2 <V, new - old> + KL(new | old) / step, else it is halved.
    Momentum is Nesterov's, in the log-density, and is dropped when the energy rises. Where that has
    not converged after a few hundred steps and the energy is convex, implicit steps go on.
    """
    K = goal.sign * np.exp(x @ D @ x.T)
    convex = goal is Goal.MINIMISE and float(np.linalg.eigvalsh(D).min()) >= 0
    first = min(steps, EXPLICIT) if convex else steps
    p, energies = _explicit(K, g, tilt - np.max(tilt), first, tolerance)
    w = _masses(p, g)
    if _gap(K, w) >= tolerance and first < steps:
        w, more = _implicit(K, g, p, steps - EXPLICIT, tolerance)
        energies += more
    if _gap(K, w) >= tolerance and len(energies) < steps:
        with np.errstate(divide="ignore"):
            p = np.maximum(np.log(w / g), -700.0)
        p, more = _explicit(K, g, p, steps - len(energies), tolerance)
        energies += more
        w = min(w, _masses(p, g), key=lambda masses: _gap(K, masses))
    return w / g, goal.sign * np.asarray(energies)


def _gap(K: Numbers, w: Numbers) -> float:
    """How much lower than the energy the potential falls, over the nodes."""
    V = K @ w
    return float(w @ V - V.min())


def _implicit(
    K: Numbers, g: Numbers, p: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, list[float]]:
    """(masses, energies) by implicit steps p' = p - step V(p') + constant, each longer than the
    last.

    The proximal point method with the entropy as distance: the energy falls at every step, however
    long, and the longer the steps the faster it converges. A step that Newton's method does not
    solve is taken shorter.
    """
    step, grow, energies = 10.0, LEAP, []
    best, least = _masses(p, g), _gap(K, _masses(p, g))
    for _ in range(min(steps, TRIES)):
        if least < tolerance:
            break
        new = _leap(K, g, p, step)
        if new is None:
            step, grow = step / LEAP, 1.5  # from here on carefully
            continue
        p, step = new, step * grow
        w = _masses(p, g)
        energies.append(float(w @ K @ w))
        if _gap(K, w) < least:
            best, least = w, _gap(K, w)
    return best, energies


def _leap(K: Numbers, g: Numbers, p: Numbers, step: float) -> Numbers | None:
    """The log-density q with q + step V(q) = p + constant, by Newton's method; None where it does
    not come.
    """
    q, best, least = p, None, np.inf
    for _ in range(NEWTON):
        w = _masses(q, g)
        V = K @ w
        rest = q - p + step * (V - w @ V)
        rest = rest - w @ rest  # a constant in the log-density means nothing
        size = float(np.abs(rest).max()) / max(1.0, step)
        if not size < 1e3 * least:  # also where it is not a number
            return None
        if size < least:
            best, least = q, size
        elif least < 1e-13:
            return best
        J = step * (K - V[:, None]) * w
        J[np.diag_indices_from(J)] += 1.0
        try:
            move = np.linalg.solve(J, rest)
        except np.linalg.LinAlgError:
            return None
        q = q - move * min(1.0, 20.0 / max(1e-300, float(np.abs(move).max())))
    return best if least < 1e-11 else None


def _explicit(
    K: Numbers, g: Numbers, p: Numbers, steps: int, tolerance: float
) -> tuple[Numbers, list[float]]:
    """(log-density, energies) by accelerated explicit steps."""
    before, step, age, energies = p, 1 / (2 * np.ptp(K)), 0, []
    w = _masses(p, g)
    for _ in range(steps):
        V = K @ w
        E = float(w @ V)
        energies.append(E)
        if E - V.min() < tolerance:
            break
        look = p + age / (age + 3) * (p - before)
        u = _masses(look, g)
        V = K @ u
        while True:
            new = look - step * (V - V.min())
            v = _masses(new, g)
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


def _masses(p: Numbers, g: Numbers) -> Numbers:
    w = g * np.exp(p - p.max())
    return w / w.sum()


def _divergence(v: Numbers, u: Numbers) -> float:
    """KL(v | u)."""
    there = (v > 0) & (u > 0)
    return float(np.sum(v[there] * np.log(v[there] / u[there])))

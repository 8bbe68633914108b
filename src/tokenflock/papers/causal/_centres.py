"""Renyi centres: tokens that are far from those before them."""

from __future__ import annotations

import numpy as np


def angles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The angles between unit vectors (n, d) and (m, d)."""
    far = np.linalg.norm(x[:, None] - y[None], axis=-1)
    return 2 * np.arcsin(np.minimum(far / 2, 1))


def strong(x: np.ndarray, delta: float) -> np.ndarray:
    """Indices of tokens that are farther than delta from all earlier tokens."""
    far = angles(x, x)
    return np.array([k for k in range(len(x)) if (far[k, :k] > delta).all()])


def centres(x: np.ndarray, delta: float) -> np.ndarray:
    """Indices of tokens that are farther than delta from all earlier centres."""
    chosen: list[int] = []
    for k, token in enumerate(x):
        if not chosen or (angles(token[None], x[chosen]) > delta).all():
            chosen.append(k)
    return np.array(chosen)


def parked(places: np.ndarray, delta: float) -> int:
    """How many of these angles, in turn, are farther than delta from all that were taken before.

    >>> parked(np.array([0.0, 0.3, 1.0, 6.2]), 0.5)
    2
    """
    taken = np.empty(0)
    for place in np.mod(places, 2 * np.pi):
        at = np.searchsorted(taken, place)
        if len(taken) == 0:
            taken = np.array([place])
            continue
        ahead = np.mod(taken[at % len(taken)] - place, 2 * np.pi)
        behind = np.mod(place - taken[at - 1], 2 * np.pi)
        if ahead > delta and behind > delta:
            taken = np.insert(taken, at, place)
    return len(taken)

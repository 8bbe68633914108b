"""Which token of a cloud is meant for which point of its target: optimal couplings."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tokenflock.meanfield.distances import distance
from tokenflock.shapes import Array

CLOSEST = 1e-12  # squares of chords between which an angle can be told apart


def couplings(clouds: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Optimal couplings (N, n, m) of clouds (N, n, d) with targets (N, m, d), for squared angles.

    >>> east, north = [1.0, 0.0], [0.0, 1.0]
    >>> couplings(np.array([[east, north]]), np.array([[north, east]]))[0].tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    import ot

    n, m = clouds.shape[1], targets.shape[1]
    if m == 1:
        return np.full((len(clouds), n, 1), 1 / n)
    u, v = np.full(n, 1 / n), np.full(m, 1 / m)
    return np.stack([ot.emd(u, v, distance(x, y) ** 2) for x, y in zip(clouds, targets)])


def cost(clouds: Array, targets: Array, plans: Array) -> Array:
    """The mean over clouds of sum_ij plan_ij angle(x_i, y_j)^2.

    W_2^2 for optimal plans, and with its gradient; above it for others.
    """
    square = jnp.sum((clouds[:, :, None] - targets[:, None]) ** 2, axis=-1)
    angle = 2 * jnp.arcsin(jnp.sqrt(jnp.clip(square, CLOSEST, 4 - 1e-3)) / 2)
    return jnp.sum(plans * angle**2) / len(clouds)

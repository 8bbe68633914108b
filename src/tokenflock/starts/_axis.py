"""Tokens at given latitudes around the last axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.spaces.sphere import normalise

RESOLVED = 2_000  # angles of a grid that resolve a density: its width is that of some hundred


def around_axis(
    key: Key[Array, ""], cosine: Float[Array, " n"], sine: Float[Array, " n"], d: int
) -> Float[Array, "n d"]:
    """Points cosine e_d + sine u with u uniform on the sphere S^(d-2) orthogonal to e_d."""
    u = normalise(jax.random.normal(key, (cosine.shape[0], d - 1)))
    return jnp.concatenate([sine[:, None] * u, cosine[:, None]], axis=-1)


def latitude_quantile(
    u: Float[Array, " n"], d: int, kappa: float = 0.0, largest: float = np.pi
) -> Float[Array, " n"]:
    """Quantiles of the angle from the axis with density ~ sin^(d-2) e^{kappa cos} on [0, largest].

    The distribution function is tabulated where the density is not negligible, which is narrow for
    large d or kappa.
    """

    def log_density(angle: np.ndarray) -> np.ndarray:  # but for a constant
        tilt = -2 * kappa * np.sin(angle / 2) ** 2
        return tilt + (d - 2) * np.log(np.maximum(np.sin(angle), 1e-300))

    low, high = 0.0, largest
    while True:
        coarse = np.linspace(low, high, 20_001)
        heavy = np.flatnonzero(log_density(coarse) > log_density(coarse).max() - 40)
        if len(heavy) >= RESOLVED:
            break
        # the density has one peak, so what is heavy lies between the neighbours of these angles
        low, high = coarse[max(heavy[0] - 1, 0)], coarse[min(heavy[-1] + 1, len(coarse) - 1)]
    grid = np.linspace(coarse[heavy[0]], coarse[heavy[-1]], 8_193)
    density = np.exp(log_density(grid) - log_density(grid).max())
    mass = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return jnp.interp(u, jnp.asarray(mass / mass[-1], u.dtype), jnp.asarray(grid, u.dtype))

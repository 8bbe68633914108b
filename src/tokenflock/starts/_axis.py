"""Tokens at given latitudes around the last axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.spaces.sphere import normalise


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

    def log_density(angle: np.ndarray) -> np.ndarray:
        return kappa * np.cos(angle) + (d - 2) * np.log(np.maximum(np.sin(angle), 1e-300))

    coarse = np.linspace(0, largest, 20_001)
    heavy = coarse[log_density(coarse) > log_density(coarse).max() - 40]
    grid = np.linspace(heavy[0], heavy[-1], 8_193) if len(heavy) > 1 else coarse
    density = np.exp(log_density(grid) - log_density(grid).max())
    mass = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return jnp.interp(u, jnp.asarray(mass / mass[-1], u.dtype), jnp.asarray(grid, u.dtype))

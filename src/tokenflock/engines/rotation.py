"""The exact rotation into fewer dimensions: tokens that stay in their span need no more than n
coordinates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tokenflock.shapes import Array


@jax.jit
def _by_cholesky(x: Array) -> Array:
    """Rows with the same Gram matrix: L with L L^T = x x^T, (systems, n, n)."""
    return jnp.linalg.cholesky(x @ jnp.swapaxes(x, -1, -2))


@jax.jit
def _by_qr(x: Array) -> Array:
    """The same for tokens that are not independent: x^T = U R, rows of R^T."""
    return jnp.swapaxes(jnp.linalg.qr(jnp.swapaxes(x, -1, -2), mode="r"), -1, -2)


def rotate(x: Array) -> Array:
    """Tokens (systems, n, d) with d > n, rotated by an orthogonal map into n dimensions.

    The Gram matrix stays.
    """
    z = _by_cholesky(x)
    return z if bool(jnp.isfinite(z).all()) else _by_qr(x)

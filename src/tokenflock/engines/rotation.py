"""The exact rotation into fewer dimensions: tokens that stay in their span need no more than n
coordinates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


@jax.jit
def _by_cholesky(x: jax.Array) -> jax.Array:
    """Rows with the same Gram matrix: L with L L^T = x x^T, (systems, n, n)."""
    return jnp.linalg.cholesky(x @ jnp.swapaxes(x, -1, -2))


@jax.jit
def _by_qr(x: jax.Array) -> jax.Array:
    """The same for tokens that are not independent: x^T = U R, rows of R^T."""
    return jnp.swapaxes(jnp.linalg.qr(jnp.swapaxes(x, -1, -2), mode="r"), -1, -2)


def rotate(x: jax.Array) -> jax.Array:
    """Tokens (systems, n, d) with d > n, turned by an orthogonal map into n dimensions.

    The Gram matrix stays.
    """
    z = _by_cholesky(x)
    return z if bool(jnp.isfinite(z).all()) else _by_qr(x)

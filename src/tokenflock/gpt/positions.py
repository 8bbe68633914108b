"""Where a token stands, told by sines: added to the tokens, or turning queries and keys."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from tokenflock.shapes import Array

LONGEST = 10_000.0  # the slowest wave has this length over 2 pi


def angles(time: int, pairs: int) -> np.ndarray:
    """Angle of each place in each plane, (time, pairs): t LONGEST^(-k / pairs). A constant, so
    NumPy has it.
    """
    return np.arange(time)[:, None] * LONGEST ** (-np.arange(pairs) / pairs)


def sinusoidal(time: int, width: int, dtype: DTypeLike = jnp.float32) -> Array:
    """Sines and cosines of the angles, (time, width). Source: arXiv 1706.03762."""
    a = angles(time, (width + 1) // 2)
    return jnp.asarray(np.concatenate([np.sin(a), np.cos(a)], axis=1)[:, :width], dtype)


def rotated(x: Array) -> Array:
    """Turn the planes (k, k + m/2) of (..., time, m) by their angles, so that <q_t, k_s> depends on
    t - s only.

    Source: arXiv 2104.09864.

    >>> import jax.numpy as jnp
    >>> q = rotated(jnp.ones((5, 4)))
    >>> bool(jnp.allclose(q[1] @ q[3], q[2] @ q[4], atol=1e-5))
    True
    """
    a = angles(x.shape[-2], x.shape[-1] // 2)
    cos, sin = jnp.asarray(np.cos(a), x.dtype), jnp.asarray(np.sin(a), x.dtype)  # (time, m/2)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)

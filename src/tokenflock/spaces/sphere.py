"""The unit sphere S^(d-1)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.shapes import Array
from tokenflock.spaces.space import Space

LONG = 1e15  # squares of such numbers are far from the ends of float32


def normalise(x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """x / |x|, and 0 for x = 0."""
    square = jnp.sum(x * x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.where(square > 0, square, 1))


class Sphere(Space):
    """The unit sphere S^(d-1) in R^d: tokens after layer normalisation.

    `tangent` is P_x v = v - <x, v> x, `project` is x / |x|.

    >>> import jax.numpy as jnp
    >>> float(Sphere().distance(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])))  # doctest: +ELLIPSIS
    1.57079...
    """

    def project(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return normalise(x)

    def admit(self, x: np.ndarray) -> np.ndarray:
        """Rows so long or so short that their squares leave the numbers, divided by their largest
        entry.
        """
        top = np.max(np.abs(x), axis=-1, keepdims=True)
        far = (top > 0) & ((top > LONG) | (top < 1 / LONG))
        return np.where(far, x / np.where(far, top, 1), x)

    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return v - jnp.sum(x * v, axis=-1, keepdims=True) * x

    def frame(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d m"]:
        """Columns 2 to d of the reflection that exchanges x and the first axis, up to a sign: the
        one that is farther from x.
        """
        d = x.shape[-1]
        sign = jnp.where(x[..., :1] < 0, -1.0, 1.0)
        v = x + sign * jnp.eye(d, dtype=x.dtype)[0]
        square = jnp.sum(v * v, axis=-1)[..., None, None]
        mirror = jnp.eye(d, dtype=x.dtype) - 2 * v[..., :, None] * v[..., None, :] / square
        return mirror[..., 1:]

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        half = 0.5 * jnp.linalg.norm(x - y, axis=-1)
        return 2 * jnp.arcsin(jnp.clip(half, 0, 1))

"""The whole space R^d."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.shapes import Array
from tokenflock.spaces.space import Space


class Euclidean(Space):
    """The whole space R^d: tokens without layer normalisation. Every direction is tangent."""

    def project(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return x

    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return v

    def frame(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d d"]:
        return jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), (*x.shape, x.shape[-1]))

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        return jnp.linalg.norm(x - y, axis=-1)

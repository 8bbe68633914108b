"""Mix-LN: Post-LN first, Pre-LN afterwards."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.dynamics._schemes import Scheme
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.spaces import Euclidean, Space, Sphere
from tokenflock.spaces.sphere import normalise


class MixNorm(Scheme):
    """Mix-LN: Post-LN up to time tau, Pre-LN after it.

        dy_j/dt = r_j P_{theta_j} A_j for t < tau (the radius stays),   dy_j/dt = A_j for t >= tau

    Source: arXiv 2510.22026.

    >>> MixNorm(beta=5.0, tau=2.0).tau
    2.0
    """

    tau: float = 5.0
    "time of the switch"

    @property
    def space(self) -> Space:
        return Euclidean()

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        A = super().field(t, q, x, w)
        length = jnp.sqrt(jnp.sum(q * q, axis=-1, keepdims=True))
        return jnp.where(t < self.tau, length * Sphere().tangent(normalise(q), A), A)

"""Post-LN first, Pre-LN afterwards."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.parts.placement import FIRST, Placement
from tokenflock.shapes import Points, Time
from tokenflock.spaces import Sphere
from tokenflock.spaces.sphere import normalise


class Mix(Placement):
    """Mix-LN: Post-LN up to time tau (the radius stays), Pre-LN after it.

        dy/dt = |y| P_{y/|y|} u for t < tau,   dy/dt = u for t >= tau

    A layer is y <- |y| N(y/|y| + h u) before tau, N(y) = y / |y|, and y <- y + h u after it.

    >>> Mix(tau=2.0).tau
    2.0
    """

    tau: float = 5.0
    "time of the switch"

    def read(self, y: Points, k: int = FIRST) -> Points:
        return normalise(y)

    def write(self, t: Time, y: Points, u: Points, k: int = FIRST) -> Points:
        return jnp.where(t < self.tau, _length(y) * u, u)

    def tangent(self, t: Time, y: Points, v: Points) -> Points:
        return jnp.where(t < self.tau, Sphere().tangent(normalise(y), v), v)

    def settle(self, t: Time, x: Points, y: Points, k: int = FIRST) -> Points:
        return jnp.where(t < self.tau, _length(x) * normalise(y), y)

    @property
    def takes_noise(self) -> bool:
        return False

    @property
    def keeps_cones(self) -> bool:
        return False


def _length(y: Points) -> Points:
    return jnp.sqrt(jnp.sum(y * y, axis=-1, keepdims=True))

"""Later layers count less."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.parts.placement import FIRST, Placement
from tokenflock.shapes import Points, Time
from tokenflock.spaces import Space, Sphere
from tokenflock.spaces.sphere import normalise


class SquareRoot(Placement):
    """Square-root scaling: Post-LN with every update divided by sqrt(t + 1).

    >>> SquareRoot().space
    Sphere()
    """

    @property
    def space(self) -> Space:
        return Sphere()

    def read(self, y: Points, k: int = FIRST) -> Points:
        return normalise(y)

    def write(self, t: Time, y: Points, u: Points, k: int = FIRST) -> Points:
        return u / jnp.sqrt(t + 1)

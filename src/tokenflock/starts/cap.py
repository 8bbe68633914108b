"""Tokens in a spherical cap."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts._axis import around_axis, latitude_quantile
from tokenflock.starts.start import Start, check_counts


class Cap(Start):
    """Independent tokens, uniform in the cap of points within `angle` of the last axis e_d.

    >>> Cap(n=16, d=3, angle=0.5).shape
    (16, 3)
    """

    n: int = 32
    "number of tokens"
    d: int = 3
    "dimension of the space around the sphere"
    angle: float = 0.5
    "half opening angle in radians, up to pi"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        require(self.d >= 2, "d", "2 or more for a cap", self.d)
        require(
            0 < self.angle <= np.pi, "angle", "between 0 and pi", self.angle, "write e.g. angle=0.5"
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        latitude, direction = jax.random.split(key)
        angle = latitude_quantile(
            jax.random.uniform(latitude, (self.n,)), self.d, largest=self.angle
        )
        return around_axis(direction, jnp.cos(angle), jnp.sin(angle), self.d)

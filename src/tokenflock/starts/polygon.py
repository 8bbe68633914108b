"""The regular polygon on the circle."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


class Polygon(Start):
    """The regular n-gon on the circle, with a small random turn of each token on request.

    A critical point of every energy on the circle; its eigenvalues are `theory.polygon_eigenvalue`.

    >>> Polygon(n=6).shape
    (6, 2)
    """

    n: int = 6
    "number of tokens"
    noise: float = 0.0
    "standard deviation of each angle, in radians"

    def __check_init__(self) -> None:
        check_counts(self.n)
        require(self.noise >= 0, "noise", "0 or more", self.noise)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, 2

    @property
    def random(self) -> bool:
        return self.noise != 0

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        angle = 2 * np.pi * np.arange(self.n) / self.n  # in NumPy: exact to double precision
        if self.noise == 0:
            return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        angle = angle + self.noise * jax.random.normal(key, (self.n,))
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)

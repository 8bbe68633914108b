"""Gaussian tokens in R^d."""

from __future__ import annotations

import jax
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


class Gaussian(Start):
    """Independent Gaussian tokens in R^d, for dynamics without normalisation.

    >>> Gaussian(n=20, d=2, scale=2.0).shape
    (20, 2)
    """

    n: int = 32
    "number of tokens"
    d: int = 2
    "dimension"
    scale: float = 1.0
    "standard deviation of each coordinate"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def on_sphere(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return self.scale * jax.random.normal(key, self.shape)

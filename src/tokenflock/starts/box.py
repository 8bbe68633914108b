"""Uniform tokens in a box of R^d."""

from __future__ import annotations

import jax
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


class Box(Start):
    """Independent tokens, uniform in the cube [-side, side]^d, for dynamics without normalisation.

    >>> Box(n=20, d=2, side=5.0).shape
    (20, 2)
    """

    n: int = 20
    "number of tokens"
    d: int = 2
    "dimension"
    side: float = 5.0
    "half the side of the cube"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        if concrete(self.side):
            require(self.side > 0, "side", "positive", self.side, "write e.g. side=5.0")

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def on_sphere(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return jax.random.uniform(key, self.shape, minval=-self.side, maxval=self.side)

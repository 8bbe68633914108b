"""Orthonormal tokens."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


class Orthogonal(Start):
    """n orthonormal tokens, the start of Theorem 6.8 of arXiv 2312.10794: the first n axes, for
    every seed.

    >>> Orthogonal(n=4, d=8).shape
    (4, 8)
    """

    n: int = 32
    "number of tokens"
    d: int = 32
    "dimension, at least n"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        require(
            self.n <= self.d,
            "n",
            f"at most d = {self.d} for orthonormal tokens",
            self.n,
            f"write d={self.n}",
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def random(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return jnp.eye(self.n, self.d)

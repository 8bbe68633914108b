"""Tokens in an open hemisphere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.spaces.sphere import normalise
from tokenflock.starts.start import Start, check_counts


class Hemisphere(Start):
    """Independent tokens, uniform in the hemisphere x_d > 0: the cone condition of Lemma 6.4 of
    arXiv 2312.10794.

    >>> Hemisphere(n=16, d=3).shape
    (16, 3)
    """

    n: int = 32
    "number of tokens"
    d: int = 3
    "dimension of the space around the sphere"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        x = normalise(jax.random.normal(key, self.shape))
        return jnp.asarray(x).at[:, -1].set(jnp.maximum(jnp.abs(x[:, -1]), 1e-6))

"""Tokens concentrated about one direction."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts._axis import around_axis, latitude_quantile
from tokenflock.starts.start import Start, check_counts


class VonMisesFisher(Start):
    """Independent tokens with density proportional to e^{kappa <x, e_d>}.

    >>> VonMisesFisher(n=16, d=3, kappa=5.0).shape
    (16, 3)
    """

    n: int = 32
    "number of tokens"
    d: int = 3
    "dimension of the space around the sphere"
    kappa: float = 5.0
    "concentration; 0 is uniform"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        require(self.d >= 2, "d", "2 or more", self.d)
        require(0 <= self.kappa < math.inf, "kappa", "0 or more, and finite", self.kappa)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        latitude, direction = jax.random.split(key)
        angle = latitude_quantile(jax.random.uniform(latitude, (self.n,)), self.d, self.kappa)
        return around_axis(direction, jnp.cos(angle), jnp.sin(angle), self.d)

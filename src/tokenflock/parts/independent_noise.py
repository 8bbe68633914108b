"""Every token is shaken by itself."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.noise import Noise
from tokenflock.shapes import Array, Tokens


class IndependentNoise(Noise):
    """Independent Brownian noise on each token: sqrt(2 / kappa) dW_i.

    >>> IndependentNoise(kappa=2.0).there
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("shalova2024noisy",)

    kappa: float = 10.0
    "inverse strength of the noise"

    def __check_init__(self) -> None:
        if concrete(self.kappa):
            require(self.kappa > 0, "kappa", "positive", self.kappa, "for no noise use NoNoise")

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        strength = jnp.sqrt(2 / jnp.asarray(self.kappa, x.dtype))
        return strength * jax.random.normal(key, x.shape, x.dtype)

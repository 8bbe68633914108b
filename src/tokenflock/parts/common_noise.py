"""All tokens are shaken alike."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.noise import Noise
from tokenflock.shapes import Array, Tokens


class CommonNoise(Noise):
    """Noise that is common to all tokens: sqrt(2 / kappa) dB with one Brownian motion B in R^d,
    whose tangent part moves each token.

    >>> CommonNoise(kappa=2.0).there
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("rigollet2025meanfield",)

    kappa: float = 10.0
    "inverse strength of the noise"

    def __check_init__(self) -> None:
        if concrete(self.kappa):
            require(self.kappa > 0, "kappa", "positive", self.kappa, "for no noise use NoNoise")

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        strength = jnp.sqrt(2 / jnp.asarray(self.kappa, x.dtype))
        return jnp.broadcast_to(strength * jax.random.normal(key, x.shape[-1:], x.dtype), x.shape)

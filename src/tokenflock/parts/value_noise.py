"""Fresh values in every layer, as noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.noise import Noise
from tokenflock.shapes import Array, Tokens


class ValueNoise(Noise):
    """Value matrices drawn anew all the time, the same for all tokens: strength dW u_i, where u_i
    is what attention says to token i and dW has independent entries of variance dt / d.

    One layer is x <- normalize(x + h u + sqrt(h) W u); `alone`, without the drift h u, it is that
    of a Transformer with fresh values in every layer. Two tokens then approach consensus like
    e^{-(d-1) t / d} in 1 - cos, and opposite places, where they are near, like e^{((d-1) /
    cosh^2(beta) - 2) t / d} in 1 + cos (strength 1). Source: the model of arXiv 2601.21942; the two
    rates are derived here.

    >>> ValueNoise().strength
    1.0
    """

    strength: float = 1.0
    "size of the noise"
    alone: bool = False
    "attention shakes only, and does not drift"

    def __check_init__(self) -> None:
        if concrete(self.strength):
            require(self.strength > 0, "strength", "positive", self.strength)

    @property
    def replaces_drift(self) -> bool:
        return self.alone

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        d = x.shape[-1]
        W = jax.random.normal(key, (d, d), x.dtype) / jnp.sqrt(jnp.asarray(d, x.dtype))
        return self.strength * (said @ W.T)

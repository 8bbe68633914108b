"""The discrete Transformer."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


class Layer(FixedStep):
    """The Transformer layer: x <- normalize(x + h force), each sublayer in turn.

    The noise of a law that has some enters with the first sublayer: x <- normalize(x + h force +
    sqrt(h) noise).

    The map behind the published figures (h = 0.1). It is not the Euler step of the flow: near a
    cluster it shrinks differences by 1/(1+h), the projected Euler step by 1-h. On R^d it is the
    residual update x + h force.

    >>> Layer(h=0.1).convention
    'layer map'
    """

    order: ClassVar[int] = 1
    convention: ClassVar[str] = "layer map"
    takes_noise: ClassVar[bool] = True

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        noise = jnp.sqrt(self.h) * dynamics.shake(t, x, w, key) if dynamics.noisy else None
        for sublayer in dynamics.sublayers:
            x = sublayer.layer(t, x, w, self.h, noise)
            noise = None
        return x

    def steps(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, count: int) -> Tokens:
        first, *others = dynamics.sublayers
        if others:
            return super().steps(dynamics, t, x, w, count)
        return first.layers(t, x, w, self.h, count)

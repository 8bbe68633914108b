"""The discrete Transformer."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


class Layer(FixedStep):
    """The Transformer layer: x <- normalize(x + h force), each sublayer in turn.

    The map behind the published figures (h = 0.1). It is not the Euler step of the flow: near a
    cluster it shrinks differences by 1/(1+h), the projected Euler step by 1-h. On R^d it is the
    residual update x + h force.

    >>> Layer(h=0.1).convention
    'layer map'
    """

    order: ClassVar[int] = 1
    convention: ClassVar[str] = "layer map"

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        for sublayer in dynamics.sublayers:
            x = dynamics.space.retract(x, self.h * sublayer.force(t, x, w))
        return x

"""A perceptron whose hidden layer has gates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tokenflock.dynamics._matrices import Path, act, shape_of
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import require
from tokenflock.parts.token_map import TokenMap
from tokenflock.shapes import Array, Points, Time


class Gated(TokenMap):
    """A perceptron with gates: W (sigma(G x) * A x), as Llama has it.

    Source: arXiv 2002.05202.

    >>> Gated(W=[[1.0], [0.0]], A=[[0.0, 1.0]], G=[[1.0, 1.0]]).dimension
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("shazeer2020glu",)

    W: Array | Path
    "outer weights, (d, m)"
    A: Array | Path
    "inner weights, (m, d)"
    G: Array | Path
    "weights of the gates, (m, d)"
    activation: Activation = Activation.SILU
    "relu, tanh, gelu, exact-gelu, silu or identity"

    def __check_init__(self) -> None:
        inner, gates, outer = shape_of(self.A), shape_of(self.G), shape_of(self.W)
        if len(inner) == 2 and outer:
            m, d = inner
            require(outer == (d, m), "W", f"of shape (d, m) = ({d}, {m}) to match A", outer)
            require(gates in ((), inner), "G", f"of the shape {inner} of A", gates)

    def think(self, t: Time, x: Points) -> Points:
        return act(self.W, self.activation(act(self.G, x, t)) * act(self.A, x, t), t)

    @property
    def dimension(self) -> int | None:
        return next(iter(shape_of(self.A)[-1:]), None)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Gated:
        W, A, G = np.random.default_rng(seed).normal(size=(3, d, 2 * d))
        return cls(W=W / (2 * d), A=A.T, G=G.T)

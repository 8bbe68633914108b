"""A perceptron with one hidden layer."""

from __future__ import annotations

import numpy as np

from tokenflock.dynamics._matrices import Path, act, at, shape_of
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import require
from tokenflock.parts.token_map import TokenMap
from tokenflock.shapes import Array, Points, Time


class TwoLayers(TokenMap):
    """A perceptron with one hidden layer: W sigma(A x + a) + b, its matrices constant or functions
    of time such as `Switching`.

    >>> TwoLayers(W=[[1.0], [0.0]], A=[[0.0, 1.0]]).dimension
    2
    """

    W: Array | Path
    "outer weights, (d, m)"
    A: Array | Path
    "inner weights, (m, d)"
    a: Array | Path | None = None
    "inner bias, (m,)"
    b: Array | Path | None = None
    "outer bias, (d,)"
    activation: Activation = Activation.RELU
    "relu, tanh, gelu, exact-gelu, silu or identity"

    def __check_init__(self) -> None:
        inner, outer = shape_of(self.A), shape_of(self.W)
        if len(inner) == 2 and outer:
            m, d = inner
            require(outer == (d, m), "W", f"of shape (d, m) = ({d}, {m}) to match A", outer)

    def think(self, t: Time, x: Points) -> Points:
        hidden = act(self.A, x, t) + (0 if self.a is None else at(self.a, t))
        return act(self.W, self.activation(hidden), t) + (0 if self.b is None else at(self.b, t))

    @property
    def dimension(self) -> int | None:
        return next(iter(shape_of(self.A)[-1:]), None)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> TwoLayers:
        random = np.random.default_rng(seed)
        W, A = random.normal(size=(d, 2 * d)) / (2 * d), random.normal(size=(2 * d, d))
        return cls(W=W, A=A, a=random.normal(size=2 * d), activation=Activation.TANH)

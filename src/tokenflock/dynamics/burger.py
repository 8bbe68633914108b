"""The flow of an energy with a symmetric matrix D."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import AttentionLaw, GradientFlow, Interaction
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Array, Points, Rows, Scalar, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Burger(AttentionLaw, GradientFlow):
    """The flow up or down the energy of a symmetric matrix D (Q^T K = D, V = D or -D).

        dx_i/dt = +- P_{x_i} ( sum_j w_j e^{<x_i, D x_j>} D x_j ),
        E = sum_ij w_i w_j e^{<x_i, D x_j>}

    With `normalised` each sum is divided by its partition function (SA). One `Layer` step is the
    update of the published code. Source: arXiv 2501.03096.

    >>> import numpy as np
    >>> Burger(D=np.diag([1.0, 0.0, 1.0]), ascend=False).dimension
    3
    """

    cites: ClassVar[tuple[str, ...]] = ("burger2025meanfield",)

    D: Array
    "symmetric matrix, (d, d)"
    ascend: bool = True
    "climb the energy (attraction for D > 0) or descend it"
    normalised: bool = False
    "divide by the partition function"

    def __check_init__(self) -> None:
        if concrete(self.D):
            shape = np.shape(self.D)
            square = len(shape) == 2 and shape[0] == shape[1]
            require(
                square and np.allclose(self.D, self.D.T),
                "D",
                "a symmetric matrix",
                f"an array of shape {shape}",
            )

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return q @ self.D @ x.T

    def values(self, t: Time, x: Tokens) -> Tokens:
        return x @ self.D if self.ascend else -x @ self.D

    @property
    def divides(self) -> bool:
        return self.normalised

    @property
    def interaction(self) -> Interaction:
        return Interaction(1.0, self.D)

    def energy(self, x: Tokens, w: Weights) -> Scalar:
        return w @ jnp.exp(x @ self.D @ x.T) @ w

    def metric(self, x: Tokens, w: Weights) -> Weights:
        return 2 * w * (jnp.sum(w * jnp.exp(x @ self.D @ x.T), axis=-1) if self.normalised else 1)

    @property
    def ascends(self) -> bool:
        return self.ascend

    @property
    def dimension(self) -> int | None:
        return np.shape(self.D)[-1]

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads
        from tokenflock.parts.no_weighing import NoWeighing
        from tokenflock.parts.softmax_weighing import SoftmaxWeighing

        attention = SoftmaxWeighing() if self.normalised else NoWeighing()
        V = self.D if self.ascend else -self.D
        return Block(GivenHeads(Q=self.D, V=V), attention=attention)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Burger:
        G = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
        return cls(D=(G + G.T) / 2)

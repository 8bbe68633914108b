"""Doubly stochastic attention (Sinkformers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import jax

from tokenflock.dynamics._kernels import log_sum_exp, softmax
from tokenflock.dynamics.dynamics import GradientFlow, MeanField
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Points, Rows, Scalar, Time, Tokens, Weights

MOST = 10_000  # rounds at every step of a solver

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Sinkhorn(MeanField, GradientFlow):
    """Doubly stochastic attention on the sphere: what is heard sums to one, and what is said too.

        dx_i/dt = P_{x_i} ( sum_j w_j u_i e^{beta <x_i, x_j>} u_j x_j ),
        sum_j w_j u_i e^{beta <x_i, x_j>} u_j = 1

    A Wasserstein gradient flow: it climbs E = -beta^{-1} sum_i w_i log u_i, a multiple of the
    entropic transport cost of mu to itself. The scaling u = e^f is found by f <- (f - log sum_j w_j
    e^{beta <x_i, x_j> + f_j}) / 2, whose error at least halves in each round near the fixed point,
    for the matrix of the logits has no negative eigenvalue: after 60 rounds rounding is left.
    Source: Remark 3.5 of arXiv 2312.10794 and arXiv 2110.11773.

    >>> Sinkhorn(beta=2.0).rounds
    60
    """

    cites: ClassVar[tuple[str, ...]] = ("sander2022sinkformers", "geshkovski2025perspective")

    beta: float = 1.0
    "inverse temperature, positive"
    rounds: int = 60
    "how often rows and columns are normalised"
    repulsive: bool = False
    "V = -I instead of V = I"

    def __check_init__(self) -> None:
        if concrete(self.beta):
            require(
                self.beta > 0,
                "beta",
                "positive",
                self.beta,
                "at beta = 0 use SelfAttention(beta=0)",
            )
        require(1 <= self.rounds <= MOST, "rounds", f"from 1 to {MOST:,}", self.rounds)

    def potential(self, x: Tokens, w: Weights) -> Weights:
        """f = log u at the tokens."""
        S = self.beta * (x @ x.T)

        def round_(_, f):
            return 0.5 * (f - log_sum_exp(S + f, w))

        return jax.lax.fori_loop(0, self.rounds, round_, -0.5 * log_sum_exp(S, w))

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        return softmax(self.beta * (q @ x.T) + self.potential(x, w), w)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return (-1.0 if self.repulsive else 1.0) * (self.attention(t, q, x, w) @ x)

    def energy(self, x: Tokens, w: Weights) -> Scalar:
        return -(w @ self.potential(x, w)) / self.beta

    def metric(self, x: Tokens, w: Weights) -> Weights:
        return w

    @property
    def ascends(self) -> bool:
        return not self.repulsive

    @property
    def keeps_cones(self) -> bool:
        return not self.repulsive

    @property
    def isotropic(self) -> bool:
        return True

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads
        from tokenflock.parts.sinkhorn_weighing import SinkhornWeighing

        V = -1.0 if self.repulsive else None
        return Block(GivenHeads(V=V), attention=SinkhornWeighing(), beta=self.beta)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Sinkhorn:
        return cls(beta=2.0)

"""Attention together with a feed-forward part: the whole Transformer block."""

from __future__ import annotations

from typing import ClassVar

from tokenflock.dynamics.dynamics import Dynamics, MeanField
from tokenflock.dynamics.neural_ode import NeuralODE
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.errors import require
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.spaces import Space


class _Perceptron(MeanField):
    """The feed-forward sublayer alone, on the space of the attention that it follows."""

    block: FeedForward

    @property
    def space(self) -> Space:
        return self.block.space

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.block.mlp.perceptron(q)


class FeedForward(MeanField):
    """Attention with a feed-forward part, both inside the projection.

        dx_i/dt = P_{x_i} ( attention_i(x) + W sigma(A x_i + b) )

    The flow adds the two; the solver `Layer` applies them in turn, as a Transformer does
    (Lie-Trotter splitting). Source: (2.8) of arXiv 2312.10794.
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)

    mlp: NeuralODE
    "the feed-forward part: W, A, b and an activation"
    base: MeanField = SelfAttention()
    "the attention part"

    def __check_init__(self) -> None:
        d, other = self.mlp.dimension, self.base.dimension
        require(
            other in (None, d),
            "FeedForward.base",
            f"a dynamics on R^{d}, as the mlp is",
            f"one on R^{other}",
        )

    @property
    def space(self) -> Space:
        return self.base.space

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.base.field(t, q, x, w) + self.mlp.perceptron(q)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.base.attention(t, q, x, w)

    @property
    def core(self) -> Dynamics:
        return self.base.core

    @property
    def layers_around(self) -> tuple[Dynamics, ...]:
        return (self, *self.base.layers_around)

    @property
    def interacts(self) -> bool:
        return self.base.interacts

    @property
    def bounded(self) -> bool:
        return self.base.bounded

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        return (self.base, _Perceptron(self))

    @property
    def dimension(self) -> int | None:
        return self.mlp.dimension

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> FeedForward:
        return cls(mlp=NeuralODE.example(n, d, seed), base=SelfAttention.example(n, d, seed))

"""Attention together with a feed-forward part: the whole Transformer block."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Around, Dynamics, MeanField
from tokenflock.dynamics.neural_ode import NeuralODE
from tokenflock.dynamics.rescaled_attention import RescaledAttention
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.errors import UserError, require
from tokenflock.parts.placement import SECOND
from tokenflock.shapes import Points, Rows, Time, Tokens, Weights
from tokenflock.spaces import Space


class _Perceptron(Dynamics):
    """The feed-forward sublayer alone, on the space of the attention that it follows."""

    block: FeedForward

    @property
    def space(self) -> Space:
        return self.block.space

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.block.think(t, x)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.block.settle(t, x, y)


class FeedForward(Around, MeanField):
    """Attention with a feed-forward part, both inside the projection.

        dx_i/dt = P_{x_i} ( attention_i(x) + W sigma(A x_i + b) )

    The flow adds the two; the solver `Layer` applies them in turn, as a Transformer does
    (Lie-Trotter splitting). The feed-forward part reads and writes as the base does: under
    `PreNorm` it reads x_i / |x_i|, under `PeriNorm` what it says is normalised too. Source: (2.8)
    of arXiv 2312.10794.
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)

    mlp: NeuralODE
    "the feed-forward part: W, A, b and an activation"
    base: Dynamics = SelfAttention()
    "the attention part"

    def __check_init__(self) -> None:
        d, other = self.mlp.dimension, self.base.dimension
        require(
            other in (None, d),
            "FeedForward.base",
            f"a dynamics on R^{d}, as the mlp is",
            f"one on R^{other}",
        )
        whole = isinstance(self.base.core, Block) or len(self.base.sublayers) > 1
        require(
            not whole,
            "FeedForward.base",
            "a law without a feed-forward part",
            type(self.base).__name__,
            "give it once; a Block has a field for it",
        )
        frame = not isinstance(self.base.core, RescaledAttention)
        require(
            frame,
            "FeedForward.base",
            "a law of the tokens themselves, not of a frame that moves with them",
            "RescaledAttention",
            "use PureAttention",
        )

    def think(self, t: Time, x: Points) -> Points:
        """What the feed-forward part does to each token."""
        place = self.place
        return place.write(t, x, self.mlp.perceptron(place.read(x, SECOND), t), SECOND)

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.base.force(t, x, w) + self.think(t, x)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self._measured().field(t, q, x, w) + self.think(t, q)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        return self._measured().attention(t, q, x, w)

    def _measured(self) -> MeanField:
        """The base, where it acts through the measure of its tokens."""
        if not isinstance(self.base, MeanField):
            raise UserError(
                f"FeedForward has no field at other points than its tokens, since its base"
                f" {type(self.base).__name__} has none"
            )
        return self.base

    @property
    def interaction(self) -> None:
        return None

    @property
    def isotropic(self) -> bool:
        return False

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        return (self.base, _Perceptron(self))

    @property
    def dimension(self) -> int | None:
        return self.mlp.dimension

    def as_block(self) -> Block:
        return dataclasses.replace(
            self.base.as_block(), feed_forward=self.mlp.as_block().feed_forward
        )

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> FeedForward:
        return cls(mlp=NeuralODE.example(n, d, seed), base=SelfAttention.example(n, d, seed))

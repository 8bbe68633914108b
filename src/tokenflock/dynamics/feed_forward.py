"""Attention together with a feed-forward part: the whole Transformer block."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Key

from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics, MeanField
from tokenflock.dynamics.neural_ode import NeuralODE
from tokenflock.dynamics.rescaled_attention import RescaledAttention
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.errors import UserError, require
from tokenflock.parts.placement import SECOND, Placement
from tokenflock.shapes import Array, Points, Rows, Scalar, Time, Tokens, Weights
from tokenflock.spaces import Space


class _Perceptron(Dynamics):
    """The feed-forward sublayer alone, on the space of the attention that it follows."""

    block: FeedForward

    @property
    def space(self) -> Space:
        return self.block.space

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.block.think(t, x)


class FeedForward(MeanField):
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

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        return self.base.attention_matrix(t, x, w)

    def shake(self, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]) -> Tokens:
        return self.base.shake(t, x, w, key)

    def diffusion(self, t: Time, x: Tokens, w: Weights) -> Scalar:
        return self.base.diffusion(t, x, w)

    @property
    def space(self) -> Space:
        return self.base.space

    @property
    def place(self) -> Placement:
        return self.base.place

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
    def noisy(self) -> bool:
        return self.base.noisy

    @property
    def smooth(self) -> bool:
        return self.base.smooth

    @property
    def matrices_at(self) -> tuple[str, ...] | None:
        return None if self.base.matrices_at is None else ("base", *self.base.matrices_at)

    @property
    def stack(self) -> int | None:
        return self.base.stack

    def with_matrices(self, Q: Any, V: Any) -> Dynamics:
        return eqx.tree_at(lambda law: law.base, self, self.base.with_matrices(Q, V))

    @property
    def exchangeable(self) -> bool:
        return self.base.exchangeable

    @property
    def particles(self) -> int | None:
        return self.base.particles

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

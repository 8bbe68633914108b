"""Attention with matrices Q, K, V."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tokenflock.dynamics._matrices import positive_multiple
from tokenflock.dynamics._qkv import QKV
from tokenflock.dynamics.dynamics import AttentionLaw, Interaction

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Attention(QKV, AttentionLaw):
    """Attention on the sphere with matrices Q, K, V, constant or moving in time.

        dx_i/dt = P_{x_i} ( sum_j A_ij V x_j ),   A_ij = w_j e^{beta <Q x_i, K x_j>} / Z_i

    Q and K are (m, d) with any m, V is (d, d). Each may be absent (the identity), a number (a
    multiple of the identity), an array, or a function of time such as `Switching`. Without
    `normalised`, A_ij = w_j e^{beta <Q x_i, K x_j>}. Source: (2.3) to (2.5) of arXiv 2312.10794.

    >>> Attention(beta=2.0, V=[[1.0, 0.0], [0.0, -1.0]]).dimension
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)

    normalised: bool = True
    "divide by the partition function (SA) or not (USA)"

    @property
    def divides(self) -> bool:
        return self.normalised

    @property
    def interaction(self) -> Interaction | None:
        plain = self.Q is None and self.K is None and self.V is None
        return Interaction(self.beta) if plain else None

    @property
    def keeps_cones(self) -> bool:
        return positive_multiple(self.V)

    def as_block(self) -> Block:
        from tokenflock.parts.no_weighing import NoWeighing

        block = super().as_block()
        return block if self.normalised else dataclasses.replace(block, attention=NoWeighing())

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Attention:
        G = np.random.default_rng(seed).normal(size=(3, d, d)) / np.sqrt(d)
        return cls(
            beta=1.5, Q=G[0, : max(1, d - 1)], K=G[1, : max(1, d - 1)], V=np.eye(d) + 0.3 * G[2]
        )

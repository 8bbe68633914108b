"""Causal attention: each token sees itself and those before it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics._matrices import positive_multiple
from tokenflock.dynamics._qkv import QKV
from tokenflock.shapes import Rows, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Causal(QKV):
    """Causal self-attention on the sphere (CSA).

        dx_k/dt = P_{x_k} ( Z_k^{-1} sum_{j <= k} w_j e^{beta <Q x_k, K x_j>} V x_j )

    With V = I the first token stays and almost all others end at it. Source: arXiv 2411.04990.

    >>> Causal(beta=2.0).exchangeable
    False
    """

    cites: ClassVar[tuple[str, ...]] = ("karagodin2024causal",)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        earlier = jnp.arange(w.shape[0])[:, None] >= jnp.arange(w.shape[0])
        return softmax(jnp.where(earlier, self.logits(t, x, x), -jnp.inf), w)

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.attention_matrix(t, x, w) @ self.values(t, x)

    @property
    def keeps_cones(self) -> bool:
        return positive_multiple(self.V)

    def as_block(self) -> Block:
        from tokenflock.parts.causal_mask import CausalMask

        return dataclasses.replace(super().as_block(), mask=CausalMask())

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Causal:
        G = np.random.default_rng(seed).normal(size=(2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1])

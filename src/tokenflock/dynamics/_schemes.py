"""What the normalisation schemes share: attention on the directions of tokens.

A token is r theta with |theta| = 1. Where a scheme lets the radius move, the state is the token
itself in R^d, and the radius is an observable: no second array is carried.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tokenflock.dynamics._qkv import QKV
from tokenflock.dynamics.dynamics import AttentionLaw, Products
from tokenflock.shapes import Points, Rows, Time, Tokens
from tokenflock.spaces.sphere import normalise


class Scheme(QKV, AttentionLaw):
    """theta_j is the direction of token j.

    A_j = sum_k softmax_k(beta <Q theta_j, K theta_k>) V theta_k.
    """

    cites: ClassVar[tuple[str, ...]] = ("karagodin2025normalization",)

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return super().logits(t, normalise(q), normalise(x))

    def products(self, t: Time, q: Points, x: Tokens) -> Products:
        return super().products(t, normalise(q), normalise(x))

    def values(self, t: Time, x: Tokens) -> Tokens:
        return super().values(t, normalise(x))

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Scheme:
        G = np.random.default_rng(seed).normal(size=(2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1])

"""What the normalisation schemes share: attention on the directions of tokens.

A token is r theta with |theta| = 1. Where a scheme lets the radius move, the state is the token itself in R^d, and the
radius is an observable: no second array is carried.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tokenflock.dynamics._matrices import Path, act, check_attention, multiple_of_identity, width
from tokenflock.dynamics.dynamics import AttentionLaw
from tokenflock.shapes import Array, Points, Rows, Time, Tokens
from tokenflock.spaces.sphere import normalise


class Scheme(AttentionLaw):
    """theta_j is the direction of token j; A_j = sum_k softmax_k(beta <Q theta_j, K theta_k>) V theta_k."""

    cites: ClassVar[tuple[str, ...]] = ("karagodin2025normalization",)

    beta: float = 1.0
    "inverse temperature"
    Q: Array | float | Path | None = None
    "queries, (m, d)"
    K: Array | float | Path | None = None
    "keys, (m, d)"
    V: Array | float | Path | None = None
    "values, (d, d)"

    def __check_init__(self) -> None:
        check_attention(type(self).__name__, self.Q, self.K, self.V)

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return self.beta * (act(self.Q, normalise(q), t) @ act(self.K, normalise(x), t).T)

    def values(self, t: Time, x: Tokens) -> Tokens:
        return act(self.V, normalise(x), t)

    @property
    def isotropic(self) -> bool:
        return multiple_of_identity(self.Q, self.K, self.V)

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Scheme:
        G = np.random.default_rng(seed).normal(size=(2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1])

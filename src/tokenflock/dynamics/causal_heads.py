"""Several heads of causal attention at once: what a GPT has."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tokenflock.dynamics._matrices import (
    Path,
    check_attention,
    identities,
    replaced,
    shape_of,
    width,
)
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.parts.causal_mask import CausalMask
from tokenflock.parts.given_heads import GivenHeads
from tokenflock.shapes import Array, Rows, Time, Tokens, Weights


class CausalHeads(Dynamics):
    """Causal multi-head attention on the sphere: the sum of causal heads.

        dx_k/dt = P_{x_k} ( sum_h 1/Z^h_k sum_{j <= k} w_j e^{beta <Q_h x_k, K_h x_j>} V_h x_j )

    Q and K are (heads, m, d), V is (heads, d, d). With V = I in every head the first token stays.
    Source: (2.7) of arXiv 2312.10794 with the mask of arXiv 2411.04990.
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective", "karagodin2024causal")
    on_chip: ClassVar[bool] = False  # no stacks of matrices there

    V: Array | Path
    "values, (heads, d, d)"
    Q: Array | Path | None = None
    "queries, (heads, m, d)"
    K: Array | Path | None = None
    "keys, (heads, m, d)"
    beta: float = 1.0
    "inverse temperature"

    def __check_init__(self) -> None:
        check_attention("CausalHeads", self.Q, self.K, self.V, heads=True)

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.as_block().force(t, x, w)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        """The mean over heads of their attention matrices."""
        return self.as_block().attention_matrix(t, x, w)

    def as_block(self) -> Block:
        return Block(GivenHeads(self.Q, self.K, self.V), mask=CausalMask(), beta=self.beta)

    @property
    def matrices_at(self) -> tuple[str, ...]:
        return ()

    @property
    def stack(self) -> int | None:
        return shape_of(self.V)[0]

    def with_matrices(self, Q: Any, V: Any) -> CausalHeads:
        return replaced(self, Q, identities(Q) if V is None else V)

    @property
    def dimension(self) -> int | None:
        return width(self.V)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> CausalHeads:
        G = np.random.default_rng(seed).normal(size=(3, 2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1], V=np.eye(d) / 2 + 0.3 * G[2])

"""Attention on R^d, without layer normalisation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tokenflock.dynamics._matrices import Path, act, check_attention, multiple_of_identity, width
from tokenflock.dynamics.dynamics import AttentionLaw
from tokenflock.shapes import Array, Points, Rows, Time, Tokens
from tokenflock.spaces import Euclidean, Space


class PureAttention(AttentionLaw):
    """Pure attention on R^d: no projection, so tokens may run to infinity.

        dx_i/dt = sum_j A_ij V x_j,   A_ij = w_j e^{beta <Q x_i, K x_j>} / Z_i

    Source: (9.1) of arXiv 2312.10794, arXiv 2305.05465. See `RescaledAttention` for the frame that follows the growth.

    >>> PureAttention(beta=1.0, V=-1.0).space
    Euclidean()
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2023emergence", "geshkovski2025perspective")

    beta: float = 1.0
    "inverse temperature"
    Q: Array | float | Path | None = None
    "queries, (m, d)"
    K: Array | float | Path | None = None
    "keys, (m, d)"
    V: Array | float | Path | None = None
    "values, (d, d)"

    def __check_init__(self) -> None:
        check_attention("PureAttention", self.Q, self.K, self.V)

    @property
    def space(self) -> Space:
        return Euclidean()

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return self.beta * (act(self.Q, q, t) @ act(self.K, x, t).T)

    def values(self, t: Time, x: Tokens) -> Tokens:
        return act(self.V, x, t)

    @property
    def isotropic(self) -> bool:
        return multiple_of_identity(self.Q, self.K, self.V)

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> PureAttention:
        G = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
        return cls(beta=0.7, V=0.3 * G)

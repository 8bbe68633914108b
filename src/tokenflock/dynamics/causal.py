"""Causal attention: each token sees itself and those before it."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics._matrices import Path, act, check_attention, multiple_of_identity, positive_multiple, width
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Rows, Time, Tokens, Weights


class Causal(Dynamics):
    """Causal self-attention on the sphere (CSA).

        dx_k/dt = P_{x_k} ( Z_k^{-1} sum_{j <= k} w_j e^{beta <Q x_k, K x_j>} V x_j )

    With V = I the first token stays and almost all others end at it. Source: arXiv 2411.04990.

    >>> Causal(beta=2.0).exchangeable
    False
    """

    cites: ClassVar[tuple[str, ...]] = ("karagodin2024causal",)

    beta: float = 1.0
    "inverse temperature"
    Q: Array | float | Path | None = None
    "queries, (m, d)"
    K: Array | float | Path | None = None
    "keys, (m, d)"
    V: Array | float | Path | None = None
    "values, (d, d)"

    def __check_init__(self) -> None:
        check_attention("Causal", self.Q, self.K, self.V)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        S = self.beta * (act(self.Q, x, t) @ act(self.K, x, t).T)
        earlier = jnp.arange(w.shape[0])[:, None] >= jnp.arange(w.shape[0])
        return softmax(jnp.where(earlier, S, -jnp.inf), w)

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.attention_matrix(t, x, w) @ act(self.V, x, t)

    @property
    def keeps_cones(self) -> bool:
        return positive_multiple(self.V)

    @property
    def isotropic(self) -> bool:
        return multiple_of_identity(self.Q, self.K, self.V)

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Causal:
        G = np.random.default_rng(seed).normal(size=(2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1])

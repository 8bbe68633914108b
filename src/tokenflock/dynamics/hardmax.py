"""Attention at infinite beta: each token listens to its favourite only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._matrices import (
    Path,
    act,
    check_attention,
    multiple_of_identity,
    replaced,
    width,
)
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Array, Points, Rows, Time, Tokens, Weights
from tokenflock.spaces import Euclidean, Space

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Hardmax(MeanField):
    """Hardmax attention on R^d: attention at infinite beta, where each token goes to those it likes
    best.

        dz_i/dt = mean of V (z_j - z_i) over j in C_i,   C_i = argmax_j <Q z_i, K z_j>
        (ties are averaged)

    One `Layer(h=a/(1+a))` is the hardmax Transformer z_i <- (z_i + a mean_{C_i} z_j) / (1 + a), and
    a Frank-Wolfe step of size h. Source: (9.4) to (9.6) of arXiv 2312.10794, arXiv 2407.01602,
    arXiv 2508.09628.

    >>> Hardmax().space
    Euclidean()
    """

    cites: ClassVar[tuple[str, ...]] = ("alcalde2024hardmax", "geshkovski2025perspective")

    Q: Array | float | Path | None = None
    "queries, (m, d)"
    K: Array | float | Path | None = None
    "keys, (m, d)"
    V: Array | float | Path | None = None
    "values, (d, d)"
    tie: float = 1e-9
    "how near to the maximum counts as a tie"

    def __check_init__(self) -> None:
        check_attention("Hardmax", self.Q, self.K, self.V)
        require(not concrete(self.tie) or self.tie >= 0, "tie", "0 or more", self.tie)

    @property
    def space(self) -> Space:
        return Euclidean()

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        S = jnp.where(w > 0, act(self.Q, q, t) @ act(self.K, x, t).T, -jnp.inf)
        best = w * (jnp.max(S, axis=-1, keepdims=True) - self.tie <= S)
        return best / jnp.sum(best, axis=-1, keepdims=True)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return act(self.V, self.attention(t, q, x, w) @ x - q, t)

    @property
    def smooth(self) -> bool:
        return False

    @property
    def matrices_at(self) -> tuple[str, ...]:
        return ()

    def with_matrices(self, Q: Any, V: Any) -> Hardmax:
        return replaced(self, Q, V)

    @property
    def isotropic(self) -> bool:
        return multiple_of_identity(self.Q, self.K, self.V)

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V)

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads
        from tokenflock.parts.hardmax_weighing import HardmaxWeighing
        from tokenflock.parts.no_norm import NoNorm

        heads = GivenHeads(self.Q, self.K, self.V, relative=True)
        return Block(heads, attention=HardmaxWeighing(self.tie), norm=NoNorm())

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Hardmax:
        G = np.random.default_rng(seed).normal(size=(d, d))
        return cls(Q=np.eye(d) + 0.2 * G, V=np.eye(d) + 0.1 * G)

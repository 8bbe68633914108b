"""Several heads of attention at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics._matrices import (
    Path,
    act,
    at,
    check_attention,
    identities,
    replaced,
    shape_of,
    width,
)
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.shapes import Array, Points, Rows, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class MultiHead(MeanField):
    """Multi-head attention on the sphere: the sum of its heads.

        dx_i/dt = P_{x_i} ( sum_h sum_j A^h_ij V_h x_j ),
        A^h_ij = w_j e^{beta <Q_h x_i, K_h x_j>} / Z^h_i

    Q and K are (heads, m, d), V is (heads, d, d), each an array or a function of time such as
    `Switching`. With `average` the sum over heads is divided by
    their number. Source: (2.7) of arXiv 2312.10794.

    >>> import numpy as np
    >>> MultiHead(V=np.stack([np.eye(3), np.diag([1.0, 0.0, 0.0])])).heads
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)
    on_chip: ClassVar[bool] = False  # no stacks of matrices there

    V: Array | Path
    "values, (heads, d, d)"
    Q: Array | Path | None = None
    "queries, (heads, m, d)"
    K: Array | Path | None = None
    "keys, (heads, m, d)"
    beta: float = 1.0
    "inverse temperature"
    average: bool = False
    "divide by the number of heads"

    def __check_init__(self) -> None:
        check_attention("MultiHead", self.Q, self.K, self.V, heads=True)

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return shape_of(self.V)[0]

    def attention_by_head(self, t: Time, q: Points, x: Tokens, w: Weights) -> Array:
        """The attention matrix of each head, (heads, m, n)."""

        def head(Q, K):
            return softmax(self.beta * (act(Q, q) @ act(K, x).T), w)

        Q, K = at(self.Q, t), at(self.K, t)
        axes = (None if Q is None else 0, None if K is None else 0)
        return jax.vmap(head, axes, axis_size=self.heads)(Q, K)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        """The mean over heads of their attention matrices."""
        return self.attention_by_head(t, q, x, w).mean(axis=0)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        heads = self.attention_by_head(t, q, x, w) @ jax.vmap(act, (0, None))(at(self.V, t), x)
        return heads.mean(axis=0) if self.average else heads.sum(axis=0)

    @property
    def matrices_at(self) -> tuple[str, ...]:
        return ()

    @property
    def stack(self) -> int | None:
        return shape_of(self.V)[0]

    def with_matrices(self, Q: Any, V: Any) -> MultiHead:
        return replaced(self, Q, identities(Q) if V is None else V)

    @property
    def dimension(self) -> int | None:
        return width(self.V, self.Q, self.K)

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads

        return Block(GivenHeads(self.Q, self.K, self.V, average=self.average), beta=self.beta)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> MultiHead:
        G = np.random.default_rng(seed).normal(size=(3, 2, d, d)) / np.sqrt(d)
        return cls(beta=1.5, Q=G[0], K=G[1], V=np.eye(d) / 2 + 0.3 * G[2])

"""What laws with matrices Q, K, V share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenflock.dynamics._matrices import (
    Path,
    act,
    check_attention,
    multiple_of_identity,
    replaced,
    width,
)
from tokenflock.dynamics.dynamics import Dynamics, Products
from tokenflock.shapes import Array, Points, Rows, Time, Tokens

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class QKV(Dynamics):
    """Logits beta <Q x_i, K x_j> and values V x_j. How a law listens to them is its own affair."""

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
        """beta <Q q_i, K x_j>."""
        return self.beta * (act(self.Q, q, t) @ act(self.K, x, t).T)

    def products(self, t: Time, q: Points, x: Tokens) -> Products:
        """The same as inner products of queries and keys."""
        return Products(act(self.Q, q, t), act(self.K, x, t), self.beta)

    def values(self, t: Time, x: Tokens) -> Tokens:
        """V x_j."""
        return act(self.V, x, t)

    def as_block(self) -> Block:
        """Its matrices as one head, on the space and with the norm that it has."""
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads

        return Block(GivenHeads(self.Q, self.K, self.V), norm=self.place, beta=self.beta)

    @property
    def matrices_at(self) -> tuple[str, ...]:
        return ()

    def with_matrices(self, Q: Any, V: Any) -> QKV:
        return replaced(self, Q, V)

    @property
    def isotropic(self) -> bool:
        return multiple_of_identity(self.Q, self.K, self.V)

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V)

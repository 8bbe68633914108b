"""The heads of attention."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Time


class HeadMatrices(NamedTuple):
    """Matrices at one time: (heads, m, d), a number (a multiple of the identity) or None."""

    Q: Any = None
    K: Any = None
    V: Any = None
    O: Any = None
    q: Any = None
    k: Any = None
    v: Any = None
    o: Any = None


def by_head(M: Any, x: Float[Array, "... n d"], heads: int) -> Float[Array, "h n m"]:
    """M_h x for each head: of the same x (n, d), or of each head's own (heads, n, d)."""
    if M is None or jnp.ndim(M) == 0:
        y = x if M is None else M * x
        return jnp.broadcast_to(y, (heads, *y.shape[-2:]))
    return x @ jnp.swapaxes(M, -1, -2)


class Heads(Part):
    """The heads of attention: how tokens ask (Q), answer (K), and what they say (V, O)."""

    @property
    @abstractmethod
    def number(self) -> int:
        """How many there are."""

    @abstractmethod
    def matrices(self, t: Time, d: int) -> HeadMatrices:
        """Their matrices at time t, on R^d."""

    @property
    def share(self) -> float:
        """By what the sum over heads is multiplied."""
        return 1.0

    @property
    def plain(self) -> bool:
        """Whether there is one, and all its matrices are the identity."""
        return False

    @property
    def says_differences(self) -> bool:
        """Whether heads say V (x_j - x_i) in place of V x_j."""
        return False

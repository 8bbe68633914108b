"""The favourite only."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class HardmaxWeighing(Weighing):
    """Hardmax: token i listens to those j whose logit is largest, ties in the shares of their
    weights.

    Source: (9.4) of arXiv 2312.10794, arXiv 2407.01602.

    >>> HardmaxWeighing().smooth
    False
    """

    cites: ClassVar[tuple[str, ...]] = ("alcalde2024hardmax",)

    tie: float = 1e-9
    "how near to the maximum counts as a tie"

    def __check_init__(self) -> None:
        require(not concrete(self.tie) or self.tie >= 0, "tie", "0 or more", self.tie)

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        S = jnp.where(w > 0, logits.sum, -jnp.inf)
        top = jnp.max(S, axis=-1, keepdims=True)
        best = jnp.where(top > -jnp.inf, w * (top - self.tie <= S), 0)
        total = jnp.sum(best, axis=-1, keepdims=True)
        return best / jnp.where(total > 0, total, 1)

    @property
    def smooth(self) -> bool:
        return False

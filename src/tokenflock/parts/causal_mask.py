"""Everyone listens to the past."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.parts.mask import Integers, Mask
from tokenflock.shapes import Array, Weights


class CausalMask(Mask):
    """Token i listens to j <= i; with `strict` to j < i, and the first to nobody.

    >>> import jax.numpy as jnp
    >>> CausalMask().seen(jnp.ones(3) / 3).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """

    strict: bool = False
    "not to itself"

    def seen(self, w: Weights) -> Bool[Array, "n n"]:
        order = jnp.arange(w.shape[0])
        return self.sees(order[:, None], order)

    def sees(self, i: Integers, j: Integers) -> Bool[Array, "..."]:
        return i > j if self.strict else i >= j

    @property
    def causal(self) -> bool:
        return True

"""A mask of one's own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.mask import Mask
from tokenflock.shapes import Array, Weights


class GivenMask(Mask):
    """A mask of one's own: token i listens to j where who[i, j] is not zero.

    >>> GivenMask([[1, 0], [1, 1]]).causal
    True
    """

    who: Array | bool
    "(n, n), not zero where the row listens to the column"

    def __check_init__(self) -> None:
        if concrete(self.who):
            shape = np.shape(self.who)
            square = len(shape) == 2 and shape[0] == shape[1]
            require(square, "GivenMask.who", "of shape (n, n)", f"shape {shape}")

    def seen(self, w: Weights) -> Bool[Array, "n n"]:
        return jnp.asarray(self.who) != 0

    @property
    def causal(self) -> bool:
        return concrete(self.who) and not np.triu(self.who, 1).any()

    @property
    def symmetric(self) -> bool:
        if not concrete(self.who):
            return True  # checked before
        there = np.asarray(self.who) != 0
        return bool(there.diagonal().all() and (there == there.T).all())

    @property
    def particles(self) -> int | None:
        return np.shape(self.who)[-1]

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> GivenMask:
        there = np.random.default_rng(seed).uniform(size=(n, n)) < 0.4
        return cls(np.eye(n) + (there | there.T))

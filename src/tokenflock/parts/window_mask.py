"""Everyone listens to near tokens."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.errors import require
from tokenflock.parts.mask import Integers, Mask, places
from tokenflock.shapes import Array, Weights


class WindowMask(Mask):
    """A sliding window: token i listens to the `width` tokens that end with itself; without
    `past`, to those less than `width` away on either side.

    Source: arXiv 2004.05150.

    >>> import jax.numpy as jnp
    >>> WindowMask(width=2).seen(jnp.ones(3) / 3).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """

    cites: ClassVar[tuple[str, ...]] = ("beltagy2020longformer",)

    width: int = 4
    "how many tokens, itself included"
    past: bool = True
    "only the past"

    def __check_init__(self) -> None:
        fits = 1 <= self.width < 2**31
        require(fits, "WindowMask.width", "from 1 to below 2^31", self.width)

    def seen(self, w: Weights) -> Bool[Array, "n n"]:
        place, order = places(w), jnp.arange(w.shape[0])
        away = place[:, None] - place
        if not self.past:
            return jnp.abs(away) < self.width
        return (order[:, None] >= order) & (away < self.width)

    def sees(self, i: Integers, j: Integers) -> Bool[Array, "..."]:
        if not self.past:
            return jnp.abs(i - j) < self.width
        return (i >= j) & (i - j < self.width)

    @property
    def causal(self) -> bool:
        return self.past

    @property
    def symmetric(self) -> bool:
        return not self.past

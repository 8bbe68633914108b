"""Any attention law for very many tokens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp

from tokenflock.dynamics._streaming import by_products, by_rows, by_tiles
from tokenflock.dynamics._streaming import tiles as plain_sum
from tokenflock.dynamics.dynamics import Around, AttentionLaw, MeanField
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.errors import require
from tokenflock.shapes import Points, Rows, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Streamed(Around, MeanField):
    """Any attention law for very many tokens: the same field, summed in blocks, so that memory
    grows like n and not n^2.

    On a GPU in float32 the sum runs by tiles in one kernel; elsewhere by blocks of rows.

    >>> Streamed(SelfAttention(beta=4.0), block=512).block
    512
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)
    on_chip: ClassVar[bool] = False  # it is for systems that do not fit there

    base: AttentionLaw = SelfAttention()
    "the law to evaluate"
    block: int = 256
    "rows of the attention matrix held at once (not on a GPU)"

    def __check_init__(self) -> None:
        fits = isinstance(self.base, AttentionLaw)
        require(
            fits,
            "Streamed.base",
            "a law made of logits and values",
            type(self.base).__name__,
            "e.g. SelfAttention",
        )
        require(self.block >= 1, "block", "1 or more", self.block)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        rows = partial(by_rows, self.base, block=self.block)
        if x.dtype != jnp.float32 or not plain_sum(self.base):
            return rows(t, q, x, w)
        tiles = partial(by_products if self._products else by_tiles, self.base)
        if q is x:  # tokens listen to tokens

            def among(t: Time, x: Tokens, w: Weights) -> Points:
                return tiles(t, x, x, w)

            return jax.lax.platform_dependent(
                jnp.asarray(t, x.dtype),
                x,
                w,
                cuda=among,
                default=lambda t, x, w: rows(t, x, x, w),
            )
        return jax.lax.platform_dependent(
            jnp.asarray(t, x.dtype), q, x, w, cuda=tiles, default=rows
        )

    @property
    def _products(self) -> bool:
        """Whether the logits of its law are inner products."""
        return type(self.base).products is not AttentionLaw.products

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        return self.base.attention(t, q, x, w)

    @property
    def keeps_cones(self) -> bool:
        return self.base.keeps_cones

    def as_block(self) -> Block:
        return self.base.as_block()

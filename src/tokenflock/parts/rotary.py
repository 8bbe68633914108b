"""Rotary positions."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.mask import places
from tokenflock.parts.positions import Positions
from tokenflock.shapes import Array, Weights


class Rotary(Positions):
    """Rotary positions: the planes (k, k + p) of queries and keys, k < p, are turned by the place
    times base^(-k/p), so that <q_i, k_j> depends on i - j only.

    2 p is the largest even number up to `share` times m; the coordinates beyond it are not turned.
    Source: (34) of arXiv 2104.09864.

    >>> Rotary().base
    10000.0
    """

    cites: ClassVar[tuple[str, ...]] = ("su2021roformer",)

    base: float = 10_000.0
    "the slowest plane turns by about 1 / base in each place"
    share: float = 1.0
    "the share of coordinates that are turned"

    def __check_init__(self) -> None:
        if concrete(self.base):
            require(self.base > 0, "Rotary.base", "positive", self.base)
            require(0 < self.share <= 1, "Rotary.share", "above 0 and at most 1", self.share)

    def turn(self, q: Float[Array, "h n m"], w: Weights) -> Float[Array, "h n m"]:
        m, order = q.shape[-1], jnp.arange(q.shape[-1])
        pairs = jnp.floor(self.share * m / 2 + 1e-6).astype(int)
        turned = order < 2 * pairs
        plane = jnp.where(order < pairs, order, order - pairs)
        speed = jnp.where(turned, self.base ** (-plane / jnp.maximum(pairs, 1)), 0).astype(q.dtype)
        angle = places(w)[:, None] * speed  # (n, m)
        partner = jnp.where(turned, jnp.where(order < pairs, order + pairs, order - pairs), order)
        sign = jnp.where(order < pairs, -1, 1).astype(q.dtype)
        return q * jnp.cos(angle) + sign * q[..., partner] * jnp.sin(angle)

    @property
    def isotropic(self) -> bool:
        return False

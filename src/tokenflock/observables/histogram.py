"""The distribution of inner products."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from tokenflock.errors import require
from tokenflock.observables.observable import PairObservable
from tokenflock.shapes import Array, Rows, Weights


class Histogram(PairObservable):
    """Distribution of cosines over pairs i != j, as the share of pairs in each of `bins` equal bins
    of [-1, 1].

    Pairs count by the product of their weights. The diagonal i = j is left out, as the captions of
    the papers say; with `diagonal` it is kept, as their published code does.
    """

    dims: ClassVar[tuple[str, ...]] = ("bin",)

    jump: ClassVar[float] = 0.5

    bins: int = 100
    "number of bins"
    diagonal: bool = False
    "count i = j as well"

    def __check_init__(self) -> None:
        require(1 <= self.bins <= 10_000_000, "bins", "from 1 to 10,000,000", self.bins)

    def by_row(self, G: Rows, apart: Bool[Array, "m n"], w: Weights) -> Array:
        place = jnp.clip(((G + 1) / 2 * self.bins).astype(int), 0, self.bins - 1)
        counted = jnp.broadcast_to(w, G.shape) if self.diagonal else jnp.where(apart, w, 0)
        row = jnp.arange(G.shape[0])[:, None]
        return jnp.zeros((G.shape[0], self.bins), G.dtype).at[row, place].add(counted)

    def of_rows(self, rows: Array, w: Weights) -> Array:
        shares = jnp.sum(w[:, None] * rows, axis=0)
        pairs = jnp.sum(w * (jnp.sum(w) - w))
        return shares if self.diagonal else shares / jnp.where(pairs > 0, pairs, 1)

    def coords(self) -> dict[str, Any]:
        edges = np.linspace(-1, 1, self.bins + 1)
        return {"bin": (edges[1:] + edges[:-1]) / 2}

"""The distribution of inner products."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.errors import require
from tokenflock.observables.observable import CosineObservable, counted_pairs, pairs
from tokenflock.shapes import Array, Rows, Weights


class Histogram(CosineObservable):
    """Distribution of cosines over pairs i != j, as the share of pairs in each of `bins` equal bins
    of [-1, 1].

    Pairs count by the product of their weights. The diagonal i = j is left out, as the captions of
    the papers say; with `diagonal` it is kept, as their published code does.
    """

    dims: ClassVar[tuple[str, ...]] = ("bin",)

    bins: int = 100
    "number of bins"
    diagonal: bool = False
    "count i = j as well"

    def __check_init__(self) -> None:
        require(1 <= self.bins <= 10_000_000, "bins", "from 1 to 10,000,000", self.bins)

    def of_cosines(self, G: Rows, w: Weights) -> Array:
        products = pairs(w) if self.diagonal else counted_pairs(w)
        place = jnp.clip(((G + 1) / 2 * self.bins).astype(int), 0, self.bins - 1)
        return jnp.zeros(self.bins, G.dtype).at[place].add(products)

    def coords(self) -> dict[str, Any]:
        edges = np.linspace(-1, 1, self.bins + 1)
        return {"bin": (edges[1:] + edges[:-1]) / 2}

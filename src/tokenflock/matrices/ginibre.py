"""Q^T K of two independent Gaussian matrices."""

from __future__ import annotations

import jax
from jaxtyping import Float, Key

from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class Ginibre(MatrixLaw):
    """B = G_1 G_2 / sqrt(d) with independent standard Gaussian entries: Q^T K for Gaussian Q and K.

    Source: Figure 5 (a) and (c) of arXiv 2312.10794.

    >>> Ginibre()
    Ginibre()
    """

    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        first, second = jax.random.normal(key, (2, d, d))
        return first @ second / d**0.5

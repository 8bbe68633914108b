"""The Gaussian orthogonal ensemble."""

from __future__ import annotations

from typing import ClassVar

import jax
from jaxtyping import Float, Key

from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class GOE(MatrixLaw):
    """B = (G + G^T) / sqrt(2): variance 1 off the diagonal and 2 on it, a law that rotations leave
    alone.

    Source: Figure 5 (b) and (d) of arXiv 2312.10794, with the normalisation that its code calls
    proper.

    >>> GOE()
    GOE()
    """

    symmetric: ClassVar[bool] = True
    diagonal: ClassVar[float] = 2.0

    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        G = jax.random.normal(key, (d, d))
        return (G + G.T) / 2**0.5

    def value_scale(self, d: int) -> float:
        return (d + 1) ** 0.5

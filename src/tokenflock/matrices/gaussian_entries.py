"""Independent Gaussian entries."""

from __future__ import annotations

import jax
from jaxtyping import Float, Key

from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class GaussianEntries(MatrixLaw):
    """A matrix of independent standard Gaussian entries.

    >>> GaussianEntries()
    GaussianEntries()
    """

    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        return jax.random.normal(key, (d, d))

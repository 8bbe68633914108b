"""A symmetric matrix with one variance everywhere."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class Wigner(MatrixLaw):
    """A symmetric matrix with standard Gaussian entries on and above the diagonal.

    Source: Figure 5 (b) and (d) of arXiv 2312.10794. It differs from `GOE` on the diagonal only.

    >>> Wigner()
    Wigner()
    """

    symmetric: ClassVar[bool] = True

    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        upper = jnp.triu(jax.random.normal(key, (d, d)))
        return upper + jnp.triu(upper, 1).T

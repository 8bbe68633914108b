"""No randomness."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class Identity(MatrixLaw):
    """B = I, so that Q = K = I and only the values are random.

    >>> Identity()
    Identity()
    """

    random: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True

    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        return jnp.eye(d)

    def value_scale(self, d: int) -> float:
        return 1.0

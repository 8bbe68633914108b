"""How deep tokens lie in a cone."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Array, Scalar, Tokens, Weights


class ConeMargin(Observable):
    """r_w = min_i <x_i, axis>: non-decreasing once positive, for V = I and any Q, K.

    Source: Lemma 6.4 of arXiv 2312.10794. The axis is e_d unless given.
    """

    isotropic: ClassVar[bool] = False
    on_chip: ClassVar[bool] = False  # it looks at one coordinate

    axis: Array | None = None
    "a direction, (d,)"

    def __check_init__(self) -> None:
        if self.axis is not None:
            shape = np.shape(self.axis)
            require(len(shape) == 1, "axis", "a vector (d,)", f"shape {shape}")
            if concrete(self.axis):
                nonzero = bool(np.any(np.asarray(self.axis) != 0))
                require(nonzero, "axis", "a direction, not the origin", "zeros")

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        if self.axis is None:
            height = x[:, -1]
        else:
            # of any length, whose square may not be a number
            axis = self.axis / jnp.max(jnp.abs(self.axis))
            height = x @ (axis / jnp.sqrt(jnp.sum(axis**2)))
        return jnp.min(jnp.where(w > 0, height, jnp.inf))

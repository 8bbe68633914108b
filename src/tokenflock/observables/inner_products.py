"""Inner products between tokens."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.observables.observable import Observable, cosines, pairs
from tokenflock.shapes import Rows, Tokens, Weights


class InnerProducts(Observable):
    """The matrix <x_i, x_j> of inner products between tokens, as cosines unless told otherwise.

    Rows and columns of tokens of weight zero are NaN.
    """

    dims: ClassVar[tuple[str, ...]] = ("particle", "other")

    normalise: bool = True
    "divide by the lengths of the tokens"

    def measure(self, x: Tokens, w: Weights) -> Rows:
        G = cosines(x) if self.normalise else x @ x.T
        return jnp.where(pairs(w > 0), G, jnp.nan)

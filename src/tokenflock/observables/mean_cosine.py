"""The mean over pairs of the cosine."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import CosineObservable, counted_pairs
from tokenflock.shapes import Rows, Scalar, Weights


class MeanCosine(CosineObservable):
    """Mean of <x_i, x_j> over pairs i != j, each pair by the product of its weights.

    1 for a single token.
    """

    def of_cosines(self, G: Rows, w: Weights) -> Scalar:
        pairs = counted_pairs(w)
        return jnp.where(jnp.sum(pairs) > 0, jnp.sum(pairs * G), 1.0)

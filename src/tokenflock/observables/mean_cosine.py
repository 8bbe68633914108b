"""The mean over pairs of the cosine."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.observables.observable import PairObservable
from tokenflock.shapes import Array, Rows, Scalar, Weights


class MeanCosine(PairObservable):
    """Mean of <x_i, x_j> over pairs i != j, each pair by the product of its weights.

    1 for a single token.
    """

    def by_row(self, G: Rows, apart: Bool[Array, "m n"], w: Weights) -> Array:
        return jnp.sum(jnp.where(apart, w * G, 0), axis=1)

    def of_rows(self, rows: Array, w: Weights) -> Scalar:
        pairs = jnp.sum(w * (jnp.sum(w) - w))  # of two different tokens
        several = jnp.sum(w > 0) > 1
        return jnp.where(several, jnp.sum(w * rows) / jnp.where(several, pairs, 1), 1.0)

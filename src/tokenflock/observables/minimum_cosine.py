"""The two tokens that are farthest apart."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.observables.observable import PairObservable
from tokenflock.shapes import Array, Rows, Scalar, Weights


class MinimumCosine(PairObservable):
    """Least inner product of two tokens: tokens are alpha-clustered when it exceeds alpha; 1 for a
    single token.

    Source: Definition in section 4 of arXiv 2312.10794.
    """

    def by_row(self, G: Rows, apart: Bool[Array, "m n"], w: Weights) -> Array:
        return jnp.min(jnp.where(apart & (w > 0), G, 1.0), axis=1)

    def of_rows(self, rows: Array, w: Weights) -> Scalar:
        return jnp.min(jnp.where(w > 0, rows, 1.0))

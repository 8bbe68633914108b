"""The two tokens that are farthest apart."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import CosineObservable, real_pairs
from tokenflock.shapes import Rows, Scalar, Weights


class MinimumCosine(CosineObservable):
    """Least inner product of two tokens: tokens are alpha-clustered when it exceeds alpha; 1 for a
    single token.

    Source: Definition in section 4 of arXiv 2312.10794.
    """

    def of_cosines(self, G: Rows, w: Weights) -> Scalar:
        return jnp.min(jnp.where(real_pairs(w), G, 1.0))

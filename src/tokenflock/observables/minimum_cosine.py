"""The two tokens that are farthest apart."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import Observable, cosines, real_pairs
from tokenflock.shapes import Scalar, Tokens, Weights


class MinimumCosine(Observable):
    """Least inner product of two tokens: tokens are alpha-clustered when it exceeds alpha; 1 for a single token.

    Source: Definition in section 4 of arXiv 2312.10794.
    """

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        return jnp.min(jnp.where(real_pairs(w), cosines(x), 1.0))

"""The mean over pairs of the cosine."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import Observable, cosines, counted_pairs
from tokenflock.shapes import Scalar, Tokens, Weights


class MeanCosine(Observable):
    """Mean of <x_i, x_j> over pairs i != j, each pair by the product of its weights; 1 for a single token."""

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        pairs = counted_pairs(w)
        return jnp.where(jnp.sum(pairs) > 0, jnp.sum(pairs * cosines(x)), 1.0)

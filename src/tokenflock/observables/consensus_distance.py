"""How far tokens are from consensus."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import Observable, pairs
from tokenflock.shapes import Scalar, Tokens, Weights


class ConsensusDistance(Observable):
    """Largest distance |x_i - x_j| between two tokens: 0 at consensus.

    Taken from differences, so it is accurate far below the 1e-8 at which 1 - <x_i, x_j> loses its
    digits.
    """

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        gaps = jnp.sum((x[:, None] - x) ** 2, axis=-1)
        return jnp.sqrt(jnp.max(jnp.where(pairs(w > 0), gaps, 0)))

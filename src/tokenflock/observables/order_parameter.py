"""How far tokens agree on one direction."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables.observable import Observable
from tokenflock.shapes import Scalar, Tokens, Weights
from tokenflock.spaces.sphere import normalise


class OrderParameter(Observable):
    """Kuramoto's order parameter r = |sum_i w_i x_i| of the directions: 1 at consensus, 0 for
    uniform tokens.

    >>> import jax.numpy as jnp
    >>> float(OrderParameter().measure(jnp.array([[1.0, 0.0], [-1.0, 0.0]]), jnp.full(2, 0.5)))
    0.0
    """

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        mean = jnp.sum(w[:, None] * normalise(x), axis=0)
        return jnp.sqrt(jnp.sum(mean * mean))

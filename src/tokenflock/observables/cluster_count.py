"""How many clusters there are."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.observables._components import adjacent, components
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Array, Tokens, Weights


class ClusterCount(Observable):
    """Number of clusters: connected components of the graph of close pairs.

    Two tokens are joined if their cosine is at least 1 - delta, or if they are within `radius` where that is given.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> int(ClusterCount().measure(x, jnp.full(3, 1 / 3)))
    2
    """

    delta: float = 1e-3
    "how far from one the cosine may be"
    radius: float | None = None
    "join by distance in R^d instead"

    @property
    def rests_within(self) -> float | None:
        return self.delta if self.radius is None else None

    def measure(self, x: Tokens, w: Weights) -> Array:
        labels = components(adjacent(x, w, self.delta, self.radius))
        return jnp.sum(labels == jnp.arange(w.shape[0]))

"""How many clusters there are."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.observables._components import ByClusters
from tokenflock.shapes import Array


class ClusterCount(ByClusters):
    """Number of clusters: connected components of the graph of close pairs.

    Two tokens are joined if their cosine is at least 1 - delta, or if they are within `radius`
    where that is given.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> int(ClusterCount().measure(x, jnp.full(3, 1 / 3)))
    2
    """

    jump: ClassVar[float] = 1.0

    @property
    def rests_within(self) -> float | None:
        return self.delta if self.radius is None else None

    def of_labels(self, labels: Array) -> Array:
        return jnp.sum(labels == jnp.arange(labels.shape[0]))

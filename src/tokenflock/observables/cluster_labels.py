"""Which cluster each token belongs to."""

from __future__ import annotations

from typing import ClassVar

from tokenflock.observables._components import adjacent, components
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Array, Tokens, Weights


class ClusterLabels(Observable):
    """The cluster of each token: the least index in its connected component, -1 for tokens of weight zero.

    Two tokens are joined if their cosine is at least 1 - delta, or if they are within `radius` where that is given. The
    partition does not depend on the order of tokens.
    """

    dims: ClassVar[tuple[str, ...]] = ("particle",)

    delta: float = 1e-3
    "how far from one the cosine may be"
    radius: float | None = None
    "join by distance in R^d instead"

    def measure(self, x: Tokens, w: Weights) -> Array:
        return components(adjacent(x, w, self.delta, self.radius))

"""Which cluster each token belongs to."""

from __future__ import annotations

from typing import ClassVar

from tokenflock.observables._components import ByClusters
from tokenflock.shapes import Array


class ClusterLabels(ByClusters):
    """The cluster of each token: the least index in its connected component, -1 for tokens of
    weight zero.

    Two tokens are joined if their cosine is at least 1 - delta, or if they are within `radius`
    where that is given. The partition does not depend on the order of tokens.
    """

    dims: ClassVar[tuple[str, ...]] = ("particle",)
    labels: ClassVar[bool] = True

    def of_labels(self, labels: Array) -> Array:
        return labels

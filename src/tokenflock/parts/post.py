"""Normalise after every sublayer."""

from __future__ import annotations

from tokenflock.errors import require
from tokenflock.parts._layer_norm import LayerNorm
from tokenflock.parts.placement import FIRST, Placement, normed, width
from tokenflock.shapes import Points, Time
from tokenflock.spaces import Euclidean, Space, Sphere


class Post(Placement):
    """Post-LN: the stream is normalised after every sublayer, so it stays on the sphere.

    With the learned norms of a model, layers are y <- N(y + h F(y)); they are no small steps of a
    flow, for the gains act at h = 0 too, and only the layer map runs.

    >>> Post().space
    Sphere()
    """

    first: LayerNorm | None = None
    "the norm after attention; y / |y| unless given"
    second: LayerNorm | None = None
    "the norm after the feed-forward part"

    def __check_init__(self) -> None:
        both = (self.first is None) == (self.second is None)
        require(both, "Post: first and second", "given both or not at all", "one of them")

    @property
    def space(self) -> Space:
        return Sphere() if self.first is None else Euclidean()

    def settle(self, t: Time, x: Points, y: Points, k: int = FIRST) -> Points:
        return normed(self.first if k == FIRST else self.second, y)

    @property
    def flows(self) -> bool:
        return self.first is None

    @property
    def isotropic(self) -> bool:
        return self.first is None

    @property
    def keeps_cones(self) -> bool:
        return self.first is None

    @property
    def dimension(self) -> int | None:
        return width(self.first, self.second)

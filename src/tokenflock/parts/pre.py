"""Normalise what sublayers read."""

from __future__ import annotations

from tokenflock.parts._layer_norm import LayerNorm
from tokenflock.parts.placement import FIRST, Placement, normed, width
from tokenflock.shapes import Points


class Pre(Placement):
    """Pre-LN: sublayers read normalised tokens and add to the stream in R^d, whose radius grows.

    >>> Pre().space
    Euclidean()
    """

    first: LayerNorm | None = None
    "the norm before attention; y / |y| unless given"
    second: LayerNorm | None = None
    "the norm before the feed-forward part"

    def read(self, y: Points, k: int = FIRST) -> Points:
        return normed(self.first if k == FIRST else self.second, y)

    @property
    def isotropic(self) -> bool:
        return self.first is None and self.second is None

    @property
    def keeps_cones(self) -> bool:
        return False

    @property
    def dimension(self) -> int | None:
        return width(self.first, self.second)

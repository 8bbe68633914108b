"""Normalise what sublayers read and what they write."""

from __future__ import annotations

from tokenflock.parts._layer_norm import LayerNorm
from tokenflock.parts.placement import FIRST, Placement, normed, width
from tokenflock.shapes import Points, Time


class Peri(Placement):
    """Peri-LN: sublayers read normalised tokens, and their outputs are normalised too.

    >>> Peri().space
    Euclidean()
    """

    first: LayerNorm | None = None
    "the norm before attention; y / |y| unless given"
    second: LayerNorm | None = None
    "the norm before the feed-forward part"
    first_out: LayerNorm | None = None
    "the norm of what attention says"
    second_out: LayerNorm | None = None
    "the norm of what the feed-forward part says"

    def read(self, y: Points, k: int = FIRST) -> Points:
        return normed(self.first if k == FIRST else self.second, y)

    def write(self, t: Time, y: Points, u: Points, k: int = FIRST) -> Points:
        return normed(self.first_out if k == FIRST else self.second_out, u)

    @property
    def isotropic(self) -> bool:
        return self.dimension is None

    @property
    def keeps_cones(self) -> bool:
        return False

    @property
    def dimension(self) -> int | None:
        return width(self.first, self.second, self.first_out, self.second_out)

"""Everything is normalised, and a gain sets the speed."""

from __future__ import annotations

from tokenflock.parts.placement import FIRST, Placement
from tokenflock.shapes import Points, Time
from tokenflock.spaces import Space, Sphere
from tokenflock.spaces.sphere import normalise


class Ngpt(Placement):
    """nGPT: the stream stays on the sphere, and outputs are normalised: alpha u / |u|.

    >>> Ngpt(alpha=0.2).space
    Sphere()
    """

    alpha: float = 1.0
    "gain of a layer"

    @property
    def space(self) -> Space:
        return Sphere()

    def read(self, y: Points, k: int = FIRST) -> Points:
        return normalise(y)

    def write(self, t: Time, y: Points, u: Points, k: int = FIRST) -> Points:
        return self.alpha * normalise(u)

    @property
    def keeps_cones(self) -> bool:
        return False

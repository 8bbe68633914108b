"""nGPT: everything is normalised, and a gain sets the speed."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme
from tokenflock.parts.ngpt import Ngpt
from tokenflock.parts.placement import Placement
from tokenflock.shapes import Points, Time, Tokens, Weights


class NGPT(Scheme):
    """nGPT: tokens stay on the sphere and the output of attention is normalised.

        dtheta_j/dt = alpha P_{theta_j} A_j / |A_j|

    Source: arXiv 2510.22026.

    >>> NGPT(beta=5.0, alpha=0.2).space
    Sphere()
    """

    alpha: float = 1.0
    "gain of a layer"

    @property
    def place(self) -> Placement:
        return Ngpt(self.alpha)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.place.write(t, q, super().field(t, q, x, w))

"""Peri-LN: normalise what attention reads and what it writes."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme
from tokenflock.parts.peri import Peri
from tokenflock.parts.placement import Placement
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.spaces import Space


class PeriNorm(Scheme):
    """Peri-LN: attention reads normalised tokens, and its output is normalised too.

        dy_j/dt = A_j / |A_j| in R^d, that is dtheta_j/dt = P_{theta_j} A_j / (r_j |A_j|),
        dr_j/dt = <theta_j, A_j> / |A_j|

    Source: arXiv 2510.22026. Clusters start fast and end slowly, 1 - rho ~ t^{-2}.

    >>> PeriNorm(beta=5.0).space
    Euclidean()
    """

    @property
    def space(self) -> Space:
        return self.place.space

    @property
    def place(self) -> Placement:
        return Peri()

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.place.write(t, q, super().field(t, q, x, w))

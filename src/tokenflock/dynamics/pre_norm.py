"""Pre-LN: normalise what attention reads, not what it writes to."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme
from tokenflock.parts.placement import Placement
from tokenflock.parts.pre import Pre
from tokenflock.spaces import Space


class PreNorm(Scheme):
    """Pre-LN: attention reads normalised tokens and adds to the unnormalised ones, whose radius
    grows.

        dy_j/dt = A_j in R^d,   that is   dtheta_j/dt = P_{theta_j} A_j / r_j,
        dr_j/dt = <theta_j, A_j>

    Source: arXiv 2510.22026. Clusters form slowly, 1 - rho ~ t^{-2}.

    >>> PreNorm(beta=5.0).space
    Euclidean()
    """

    @property
    def space(self) -> Space:
        return self.place.space

    @property
    def place(self) -> Placement:
        return Pre()

"""Square-root scaling: later layers count less."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme
from tokenflock.parts.placement import Placement
from tokenflock.parts.square_root import SquareRoot
from tokenflock.shapes import Points, Time, Tokens, Weights


class SqrtNorm(Scheme):
    """Square-root scaling (CoD, LN-scaling): Post-LN with the branch divided by sqrt(t + 1).

        dtheta_j/dt = P_{theta_j} A_j / sqrt(t + 1)

    Source: arXiv 2510.22026. Clusters form at rate 1 - rho ~ e^{-4 sqrt t}.

    >>> SqrtNorm(beta=5.0).space
    Sphere()
    """

    @property
    def place(self) -> Placement:
        return SquareRoot()

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.place.write(t, q, super().field(t, q, x, w))

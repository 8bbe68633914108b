"""Mix-LN: Post-LN first, Pre-LN afterwards."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme
from tokenflock.parts.mix import Mix
from tokenflock.parts.placement import Placement
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.spaces import Space


class MixNorm(Scheme):
    """Mix-LN: Post-LN up to time tau, Pre-LN after it.

        dy_j/dt = r_j P_{theta_j} A_j for t < tau (the radius stays),   dy_j/dt = A_j for t >= tau

    A layer is y <- r N(theta + h A) before tau, N(y) = y / |y|, and y <- y + h A after it.
    Source: arXiv 2510.22026.

    >>> MixNorm(beta=5.0, tau=2.0).tau
    2.0
    """

    tau: float = 5.0
    "time of the switch"

    @property
    def space(self) -> Space:
        return self.place.space

    @property
    def place(self) -> Placement:
        return Mix(self.tau)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.place.write(t, q, super().field(t, q, x, w))

    def tangent(self, t: Time, x: Tokens, v: Tokens) -> Tokens:
        return self.place.tangent(t, x, v)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.place.settle(t, x, y)

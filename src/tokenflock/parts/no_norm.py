"""No norm at all."""

from __future__ import annotations

from tokenflock.parts.placement import Placement


class NoNorm(Placement):
    """No norm: the pure residual stream in R^d, which may run to infinity.

    >>> NoNorm().space
    Euclidean()
    """

    @property
    def keeps_cones(self) -> bool:
        return False

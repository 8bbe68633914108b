"""A measure about one direction."""

from __future__ import annotations

import numpy as np

from tokenflock.errors import require
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Grid, Numbers


class VonMises(Density):
    """The von Mises density on the circle, von Mises-Fisher on S^(d-1): density ~ e^{kappa
    cos(angle to the axis)}.

    >>> from tokenflock.meanfield import grid
    >>> int(np.argmax(VonMises(kappa=3.0, mean=np.pi).on(grid(2, 64))))
    32
    """

    kappa: float = 5.0
    "concentration; 0 is uniform"
    mean: float = 0.0
    "angle of its axis; on S^(d-1) 0 or pi"

    def __check_init__(self) -> None:
        require(self.kappa >= 0, "kappa", "0 or more", self.kappa)

    def relative(self, grid: Grid) -> Numbers:
        return np.exp(self.kappa * (grid.height(self.mean) - 1))

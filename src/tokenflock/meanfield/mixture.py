"""Several densities at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenflock.errors import require, require_weights
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Grid, Numbers
from tokenflock.meanfield.von_mises import VonMises
from tokenflock.shapes import Array


class Mixture(Density):
    """A mixture of densities: sum_a masses_a density_a.

    >>> from tokenflock.meanfield import grid
    >>> two = Mixture([VonMises(9.0), VonMises(9.0, mean=np.pi)], masses=[2, 1]).on(grid(2, 64))
    >>> round(float(two[0] / two[32]), 6)
    2.0
    """

    parts: Sequence[Density] = (VonMises(20.0), VonMises(20.0, mean=np.pi))
    "the densities"
    masses: Array | None = None
    "their masses, equal unless given; scaled to sum to one"

    def __check_init__(self) -> None:
        several = isinstance(self.parts, (list, tuple)) and len(self.parts) > 0
        fits = several and all(isinstance(part, Density) for part in self.parts)
        remedy = "e.g. [VonMises(), Ripple()]"
        require(fits, "parts", "a list of densities", f"{self.parts!r:.80}", remedy)
        if self.masses is not None:
            require_weights("masses", self.masses, len(self.parts), "part")

    def relative(self, grid: Grid) -> Numbers:
        masses = np.ones(len(self.parts)) if self.masses is None else np.asarray(self.masses)
        densities = [mass * part.on(grid) for mass, part in zip(masses, self.parts)]
        return sum(densities[1:], start=densities[0])

"""What a density to start from is."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tokenflock.errors import require
from tokenflock.frozen import Frozen
from tokenflock.meanfield.grids import Grid, Numbers


class Density(Frozen):
    """A probability density on the circle, or one symmetric about an axis on S^(d-1)."""

    @abstractmethod
    def relative(self, grid: Grid) -> Numbers:
        """The density at the nodes of any grid, relative to the uniform one, up to a factor."""

    def on(self, grid: Grid) -> Numbers:
        """The same with mass one."""
        values = self.relative(grid)
        require(
            np.shape(values) == (grid.points,),
            "start",
            f"a density with a value at each node of any grid, here {grid.points}",
            f"shape {np.shape(values)}",
            "compute `relative` at grid.coordinate",
        )
        return values / (grid.weights @ values)

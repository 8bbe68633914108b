"""A ripple of the uniform measure."""

from __future__ import annotations

import numpy as np
from scipy.special import eval_chebyt, eval_gegenbauer

from tokenflock.errors import require
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Grid, Numbers


class Ripple(Density):
    """Uniform plus one mode: density ~ 1 + amplitude cos(k (theta - mean)), on S^(d-1) the
    Gegenbauer polynomial of degree k.

    The polynomial is 1 at the pole, so |amplitude| <= 1 is a density. What such a start does is
    `theory.growth_rate`.

    >>> from tokenflock.meanfield import grid
    >>> float(Ripple(k=2, amplitude=0.5).on(grid(2, 64)).max())
    1.5
    """

    k: int = 1
    "degree of the mode"
    amplitude: float = 0.01
    "its size at the pole, at most 1"
    mean: float = 0.0
    "angle of its crest; on S^(d-1) 0 or pi"

    def __check_init__(self) -> None:
        require(self.k >= 1, "k", "1 or more", self.k)
        require(abs(self.amplitude) <= 1, "amplitude", "from -1 to 1", self.amplitude)

    def relative(self, grid: Grid) -> Numbers:
        # higher modes are cut off, or look like lower ones at the nodes
        highest = int(grid.degree.max())
        require(
            self.k <= highest,
            "k",
            f"at most {highest}, the highest mode on {grid.points} points",
            self.k,
            f"write points={4 * self.k}",
        )
        u, half = grid.height(self.mean), grid.d / 2 - 1
        mode = (
            eval_chebyt(self.k, u)
            if grid.d == 2
            else eval_gegenbauer(self.k, half, u) / eval_gegenbauer(self.k, half, 1.0)
        )
        return 1 + self.amplitude * np.asarray(mode)

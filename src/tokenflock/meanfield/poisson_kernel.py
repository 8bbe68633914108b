"""The density that stays of its kind at beta = 0."""

from __future__ import annotations

from tokenflock.errors import require
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Grid, Numbers


class PoissonKernel(Density):
    """The Poisson kernel: density ~ (1 - r^2) / (1 - 2 r cos(angle) + r^2)^{d/2}, whose mode k has
    the size r^k.

    On the circle and at beta = 0 it stays a Poisson kernel, with the r of `theory.poisson_order`
    (Ott and Antonsen, 2008).

    >>> from tokenflock.meanfield import grid
    >>> float(PoissonKernel(r=0.5).on(grid(2, 128)).max().round(10))  # (1 + r) / (1 - r)
    3.0
    """

    r: float = 0.3
    "order parameter, from 0 (uniform) to below 1 (a Dirac)"
    mean: float = 0.0
    "angle of its axis; on S^(d-1) 0 or pi"

    def __check_init__(self) -> None:
        require(0 <= self.r < 1, "r", "at least 0 and below 1", self.r, "write e.g. r=0.3")

    def relative(self, grid: Grid) -> Numbers:
        u = grid.height(self.mean)
        return (1 - self.r**2) / ((1 - self.r) ** 2 + 2 * self.r * (1 - u)) ** (grid.d / 2)

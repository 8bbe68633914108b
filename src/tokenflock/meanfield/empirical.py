"""The measure of given tokens, made smooth."""

from __future__ import annotations

import numpy as np

from tokenflock.errors import require, require_weights
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Grid, Numbers
from tokenflock.meanfield.potential import points_on_sphere
from tokenflock.shapes import Array


class Empirical(Density):
    """Tokens smoothed by the heat kernel: mode k of the measure times e^{-k(k+d-2) bandwidth^2 /
    2}.

    On the circle each token becomes a wrapped normal density of that standard deviation. On S^(d-1)
    the measure is also averaged over the rotations about the last axis. Without bandwidth the modes
    are only cut off, and the density may be negative.

    >>> from tokenflock.meanfield import grid
    >>> # sqrt(2 pi) / 0.2
    >>> float(Empirical([[1.0, 0.0]], bandwidth=0.2).on(grid(2, 128)).max().round(3))
    12.533
    """

    x: Array
    "tokens, (n, d)"
    w: Array | None = None
    "their weights, equal unless given"
    bandwidth: float = 0.1
    "standard deviation of the smoothing, in radians"

    def __check_init__(self) -> None:
        require(np.ndim(self.x) == 2, "x", "an array of shape (n, d)", f"shape {np.shape(self.x)}")
        if self.w is not None:
            require_weights("w", self.w, len(self.x))
        points_on_sphere("x", np.asarray(self.x))
        require(self.bandwidth >= 0, "bandwidth", "0 or more", self.bandwidth)

    def relative(self, grid: Grid) -> Numbers:
        fits = np.shape(self.x)[1] == grid.d
        require(
            fits,
            "x",
            f"tokens in d = {grid.d}",
            f"d = {np.shape(self.x)[1]}",
            f"write d={np.shape(self.x)[1]}",
        )
        x = points_on_sphere("x", np.asarray(self.x))
        w = np.full(len(x), 1 / len(x)) if self.w is None else self.w / np.sum(self.w)
        modes = (
            grid.functions(grid.place(x))[0].T @ w * np.exp(-grid.laplace * self.bandwidth**2 / 2)
        )
        return grid.tables[0] @ modes

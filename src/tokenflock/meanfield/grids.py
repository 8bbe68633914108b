"""Where a density lives: the circle, or the latitudes of S^(d-1) for measures symmetric about an
axis.

Both are the same thing to the solver: nodes with quadrature weights g of the uniform probability
measure, functions phi_k that are orthonormal for it, their slopes, and the eigenvalues k(k+d-2) of
the Laplacian. Products of a density and a velocity are resolved because only two thirds of the
functions that the nodes carry are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, roots_jacobi

from tokenflock.engines.memory import require_memory
from tokenflock.errors import require, require_whole

Numbers = NDArray[np.float64]


def grid(d: int = 2, points: int | None = None) -> Grid:
    """The circle for d = 2, the latitudes of S^(d-1) for d >= 3.

    >>> grid(3, 64).surface  # 4 pi  # doctest: +ELLIPSIS
    12.566...
    """
    require_whole("d", d, 2, 1_000_000)
    points = (256 if d == 2 else 96) if points is None else points
    require_whole("points", points, 8)
    require_memory(8.0 * float(points) ** 2, f"a grid of {points:,} points", "take fewer points")
    return Circle(2, points) if d == 2 else Latitudes(d, points)


class Grid(ABC):
    """Nodes, weights and functions; see the module."""

    name: str  # of its coordinate

    def __init__(self, d: int, points: int) -> None:
        self.d, self.points = d, points

    @property
    @abstractmethod
    def coordinate(self) -> Numbers:
        """The angle of each node."""

    @property
    @abstractmethod
    def weights(self) -> Numbers:
        """Quadrature weights of the uniform probability measure."""

    @abstractmethod
    def height(self, mean: float) -> Numbers:
        """cos of the angle between each node and the axis at angle `mean`."""

    @abstractmethod
    def place(self, x: Numbers) -> Numbers:
        """What `functions` takes, for tokens x (n, d)."""

    @abstractmethod
    def functions(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """(phi_k, their slopes) at given places, one column each."""

    @property
    @abstractmethod
    def nodes(self) -> Numbers:
        """What `functions` takes, for the nodes."""

    @property
    @abstractmethod
    def degree(self) -> NDArray[np.int_]:
        """The degree k of each function."""

    @property
    def surface(self) -> float:
        """Area of the sphere, 2 pi^(d/2) / Gamma(d/2)."""
        return float(2 * np.exp(self.d / 2 * np.log(np.pi) - gammaln(self.d / 2)))

    @property
    def laplace(self) -> Numbers:
        """Eigenvalues k(k+d-2) of minus the Laplacian."""
        return self.degree * (self.degree + self.d - 2.0)

    @cached_property
    def tables(self) -> tuple[Numbers, Numbers]:
        """`functions` at the nodes."""
        return self.functions(self.nodes)

    def coefficients(self, density: Numbers) -> Numbers:
        """a_k = int density phi_k, for a density at the nodes, relative to the uniform one."""
        return self.tables[0].T @ (self.weights * density)


class Circle(Grid):
    """Equidistant angles theta; functions 1, sqrt 2 cos k theta, sqrt 2 sin k theta."""

    name = "theta"

    @property
    def coordinate(self) -> Numbers:
        return 2 * np.pi * np.arange(self.points) / self.points

    nodes = coordinate

    @property
    def weights(self) -> Numbers:
        return np.full(self.points, 1 / self.points)

    @property
    def degree(self) -> NDArray[np.int_]:
        k = np.arange(1, self.points // 3 + 1)
        return np.concatenate([[0], k, k])

    def height(self, mean: float) -> Numbers:
        return np.cos(self.coordinate - mean)

    def place(self, x: Numbers) -> Numbers:
        return np.arctan2(x[:, 1], x[:, 0])

    def functions(self, at: Numbers) -> tuple[Numbers, Numbers]:
        k = np.arange(1, self.points // 3 + 1)
        c, s = np.sqrt(2) * np.cos(np.outer(at, k)), np.sqrt(2) * np.sin(np.outer(at, k))
        flat = np.ones((len(at), 1))
        return np.hstack([flat, c, s]), np.hstack([0 * flat, -k * s, k * c])


class Latitudes(Grid):
    """Gauss nodes u = cos(latitude) for the weight (1-u^2)^((d-3)/2); functions: orthonormal
    Gegenbauer polynomials of u.

    The latitude is the angle to the axis, the last coordinate direction.
    """

    name = "latitude"

    @cached_property
    def _rule(self) -> tuple[Numbers, Numbers]:
        u, g = gauss(self.points, self.d - 3)
        return u[::-1], g[::-1]

    @property
    def nodes(self) -> Numbers:
        return self._rule[0]

    @property
    def coordinate(self) -> Numbers:
        return np.arccos(self.nodes)

    @property
    def weights(self) -> Numbers:
        return self._rule[1]

    @property
    def degree(self) -> NDArray[np.int_]:
        return np.arange(2 * self.points // 3)

    def height(self, mean: float) -> Numbers:
        fits = np.isclose(abs(np.cos(mean)), 1)
        require(bool(fits), "mean", "0 or pi, the two poles, for d >= 3", mean, "write mean=0.0")
        return np.round(np.cos(mean)) * self.nodes

    def place(self, x: Numbers) -> Numbers:
        return x[:, -1]

    def functions(self, at: Numbers) -> tuple[Numbers, Numbers]:
        half, k = self.d / 2 - 1, self.degree[1:]
        # u p_j = step_j p_(j+1) + step_(j-1) p_(j-1)
        step = np.sqrt(k * (k + 2 * half - 1) / (4 * (k + half) * (k + half - 1)))
        values, slopes = np.zeros((2, len(self.degree), len(at)))
        values[0], values[1], slopes[1] = 1, at / step[0], 1 / step[0]
        for j in k[:-1]:
            values[j + 1] = (at * values[j] - step[j - 1] * values[j - 1]) / step[j]
            slopes[j + 1] = (values[j] + at * slopes[j] - step[j - 1] * slopes[j - 1]) / step[j]
        return values.T, slopes.T


def gauss(points: int, power: int) -> tuple[Numbers, Numbers]:
    """Gauss rule for the probability weight (1-u^2)^(power/2) on [-1, 1].

    >>> u, g = gauss(5, 0)
    >>> round(float(g @ u**8), 12)  # 1/9
    0.111111111111
    """
    u, g = roots_jacobi(points, power / 2, power / 2)
    return u, g / g.sum()

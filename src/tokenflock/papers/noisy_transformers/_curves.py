"""Branches as smooth curves: continuation takes long steps, which lines through its points show."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from tokenflock.shapes import Array


def smooth(*columns: Array, count: int = 400) -> tuple[Array, ...]:
    """Columns of numbers along a branch, at many places evenly along the way of the first two."""
    values = np.stack([np.asarray(column, float) for column in columns])
    way = np.append(0, np.cumsum(np.hypot(*np.diff(values[:2], axis=1))))
    return tuple(CubicSpline(way, values, axis=1)(np.linspace(0, way[-1], count)))

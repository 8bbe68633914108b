"""One measure out of many shapes: tokens, a result of `simulate`, a density."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.signal import resample

from tokenflock.errors import (
    UserError,
    finite_numbers,
    require,
    require_weights,
)
from tokenflock.meanfield.potential import Numbers, points_on_sphere

FINE = 1024  # points that stand for a density on the circle


def weighted_points(
    measure: xr.Dataset | Numbers, w: Numbers | None = None
) -> tuple[Numbers, Numbers]:
    """(points on the sphere, masses that sum to one) of tokens (n, d), or of the last frame of a
    result.

    >>> weighted_points(np.array([[2.0, 0.0], [0.0, 1.0]]))[1].tolist()
    [0.5, 0.5]
    """
    if isinstance(measure, xr.Dataset):
        given = "weights of its own"
        require(w is None, "w", "left out for a result, which holds its weights", given)
        return _of_result(measure)
    x = finite_numbers("measure", measure)
    require(
        x.ndim == 2,
        "measure",
        "tokens of shape (n, d), or a result",
        f"an array of shape {x.shape}",
    )
    w = np.ones(len(x)) if w is None else finite_numbers("w", w)
    require_weights("w", w, len(x), "point")
    return points_on_sphere("measure", x), w / w.sum()


def _of_result(result: xr.Dataset) -> tuple[Numbers, Numbers]:
    last = result.isel(time=-1) if "time" in result.dims else result
    if "x" in last:
        return weighted_points(last.x.values, last.w.values if "w" in last else None)
    if "density" not in last or ("theta" not in last.dims and "nodes" not in last):
        raise UserError(
            "measure must be tokens, a run with `x`, or a density on the circle; on latitudes give"
            " points yourself"
        )
    if "theta" in last.dims:
        return _of_circle(last.density.values)
    masses = np.maximum(last.density.values * last.weight.values, 0).ravel()
    return weighted_points(last.nodes.values.reshape(len(masses), -1), masses)


def _of_circle(density: Numbers) -> tuple[Numbers, Numbers]:
    """A density at equidistant angles from 0, by its Fourier series at FINE or more of them."""
    masses = np.asarray(resample(density, max(FINE, len(density))))
    theta = 2 * np.pi * np.arange(len(masses)) / len(masses)
    return weighted_points(np.stack([np.cos(theta), np.sin(theta)], axis=1), np.maximum(masses, 0))

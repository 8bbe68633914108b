"""Batches of repeats taken together, and grid points that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

BATCH = "batch"  # the axis of further repeats


def pool(means: Any, errors: Any, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and its standard error of k batches of r repeats each, along the first axis.

        m = sum_b m_b / k,   e^2 = sum_b (r (r - 1) e_b^2 + r (m_b - m)^2) / (k r (k r - 1))

    NaN batches are not there. This is the error of all repeats together, to rounding.

    >>> numbers = np.arange(12.0).reshape(3, 4) ** 2
    >>> mean, error = pool(numbers.mean(1), numbers.std(1, ddof=1) / 2, 4)
    >>> bool(np.isclose(error, numbers.ravel().std(ddof=1) / 12**0.5))
    True
    """
    means, errors = np.asarray(means, float), np.asarray(errors, float)
    there = ~np.isnan(means)
    count = there.sum(axis=0)
    safe = np.maximum(count, 1)
    mean = np.where(there, means, 0.0).sum(axis=0) / safe
    within = np.where(there, repeats * (repeats - 1) * errors**2, 0.0).sum(axis=0)
    across = np.where(there, repeats * (means - mean) ** 2, 0.0).sum(axis=0)
    total = safe * repeats
    error = np.sqrt((within + across) / (total * np.maximum(total - 1, 1)))
    return np.where(count > 0, mean, np.nan), np.where(count > 0, error, np.nan)


def pooled(result: xr.Dataset, repeats: int) -> xr.Dataset:
    """A refined result with the batches of each cell taken together, and how many repeats that
    makes.
    """
    if BATCH not in result.dims:
        return result
    names = [str(name) for name in result.data_vars if f"{name}_error" in result]
    if not names:
        return result
    merged = {}
    for name in names:
        table = result[name]
        axis = table.dims.index(BATCH)
        means, errors = (
            np.moveaxis(result[key].values, axis, 0) for key in (name, f"{name}_error")
        )
        dims = tuple(dim for dim in table.dims if dim != BATCH)
        both = zip((name, f"{name}_error"), pool(means, errors, repeats))
        merged |= {key: (dims, values, result[key].attrs) for key, values in both}
    coords = {key: each for key, each in result.coords.items() if key != BATCH}
    whole = xr.Dataset(merged, coords, result.attrs)
    there = result[names[0]].notnull()
    there = there.any([dim for dim in there.dims[there.dims.index(BATCH) + 1 :]])
    whole["repeats"] = there.sum(BATCH) * repeats
    whole["done"] = whole["repeats"] > 0
    return whole


def between(result: xr.Dataset, axes: Sequence[str]) -> xr.Dataset:
    """A refined result whose missing grid points are drawn as straight lines between neighbours."""
    filled = result
    for dim in reversed([axis for axis in axes if axis in result.dims]):
        numbers = {
            name: filled[name].interpolate_na(dim)
            for name in filled.data_vars
            if dim in filled[name].dims and filled[name].dtype.kind == "f"
        }
        filled = filled.assign(numbers)
    return filled

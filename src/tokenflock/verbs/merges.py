"""The history of a run: when clusters merged, and how long each stage lasted."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.errors import require, require_increasing
from tokenflock.observables.cluster_labels import ClusterLabels
from tokenflock.verbs.measure import measure, shares


def merges(result: xr.Dataset, delta: float = 1e-3, radius: float | None = None) -> xr.Dataset:
    """The merges of a trajectory: at which time (or layer) the number of clusters first fell to
    each new low.

    Clusters are connected components of pairs with cosine at least 1 - delta (or within `radius`).
    The times are those of frames: keep more frames for sharper ones. Returns a Dataset along
    `merge` with `time`, `before`, `after` (counts) and `largest` (weight of the largest cluster
    after it).
    """
    counts, shares = _counts(result, delta, radius)
    low = np.minimum.accumulate(counts)
    at = np.flatnonzero(np.diff(low) < 0) + 1
    attrs = {"long_name": "merges of clusters", "delta": delta}
    frame = str(result["x"].dims[0])
    return xr.Dataset(
        {
            frame: ("merge", _times(result)[at]),
            "before": ("merge", low[at - 1]),
            "after": ("merge", low[at]),
            "largest": ("merge", shares[at]),
        },
        attrs=attrs,
    )


def dwell_times(
    result: xr.Dataset, delta: float = 1e-3, radius: float | None = None
) -> xr.DataArray:
    """How long a trajectory stayed at each number of clusters, along `clusters`.

    The last stage is cut off by the run.
    """
    counts, _ = _counts(result, delta, radius)
    low = np.minimum.accumulate(counts)
    times = _times(result)
    spans = np.append(np.diff(times), 0.0)
    levels = np.unique(low)[::-1]
    dwell = [spans[low == level].sum() for level in levels]
    return xr.DataArray(
        dwell,
        dims="clusters",
        coords={"clusters": levels},
        attrs={"long_name": "dwell time"},
        name="dwell",
    )


def _counts(
    result: xr.Dataset, delta: float, radius: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Number of clusters and weight of the largest, at each time."""
    many = "for an ensemble write ensemble(..., until=Merged(since=4))"
    require("x" in result, "result", "a trajectory", sorted(map(str, result.data_vars)), many)
    axes = result["x"].dims
    several = f"select one, e.g. result.isel({axes[0]}=0)"
    require(len(axes) == 3, "x", "of axes (time, particle, coord)", axes, several)
    require_increasing(str(axes[0]), _times(result))
    labels = measure(result, ClusterLabels(delta, radius))["cluster_labels"].values
    require(
        labels.dtype.kind == "i",
        "x",
        "finite",
        "NaN or infinity",
        f"write result.dropna({axes[0]!r})",
    )
    counts = np.array([len(np.unique(row[row >= 0])) for row in labels])
    largest = [
        np.bincount(row[row >= 0], weights=w[row >= 0]).max()
        for row, w in zip(labels, shares(result))
    ]
    return counts, np.array(largest)


def _times(result: xr.Dataset) -> np.ndarray:
    """The times (or layers) of the frames."""
    frame = result["x"].dims[0]
    return result[frame].values if frame in result.coords else np.arange(result.sizes[frame])

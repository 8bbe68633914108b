"""Runs and probed models as a page shows them: tokens on three axes, and what was measured."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.errors import UserError, require
from tokenflock.laboratory.shelf import BINS
from tokenflock.observables.cluster_count import ClusterCount
from tokenflock.observables.cluster_labels import ClusterLabels
from tokenflock.observables.histogram import Histogram
from tokenflock.observables.mean_cosine import MeanCosine
from tokenflock.observables.order_parameter import OrderParameter
from tokenflock.verbs.measure import measure

FRAMES = 240
TOKENS = 2000
AXES = 3


def is_recording(result: xr.Dataset) -> bool:
    """Whether a result holds tokens that moved, in time or through layers."""
    return "x" in result and bool({"time", "layer"} & set(result.x.dims))


def recording(result: xr.Dataset, prompt: int = 0) -> dict[str, Any]:
    """A run, or one prompt of a probed model, as plain values for a page.

    Tokens of more than three dimensions are told by their first principal axes over all frames;
    what was measured is measured before, in all dimensions.
    """
    require(
        is_recording(result), "result", "a run or a probe with tokens x", list(result.data_vars)
    )
    run = _one(result, prompt)
    axis = "layer" if "layer" in run.x.dims else "time"
    frames = _thinned(run.sizes[axis], FRAMES)
    run = run.isel({axis: frames})
    x = run.x.transpose(axis, ...).values.astype(float)
    w = np.asarray(run.w.values, float) if "w" in run else np.full(x.shape[1], 1 / x.shape[1])
    if w.ndim > 1:
        w = w[0]
    kept = np.flatnonzero(w > 0)[:TOKENS]
    x, w = x[:, kept], w[kept] / w[kept].sum()
    shown, share = _axes(x)
    lengths = np.linalg.norm(shown, axis=-1)
    return {
        "format": "tokenflock recording",
        "title": str(run.attrs.get("model") or run.attrs.get("title", "a run")),
        "axis": "layer" if axis == "layer" else "t",
        "n": len(w),
        "d": shown.shape[-1],
        "count": len(shown),
        "times": [float(value) for value in run[axis].values],
        "x": packed(shown),
        "w": packed(w),
        "seen": _seen(x, w),
        "words": _words(run, kept),
        "share": share,
        "sphere": bool(np.allclose(lengths, 1, atol=1e-4)),
    }


def packed(values: np.ndarray) -> str:
    """Numbers as base64 of little-endian float32.

    >>> packed(np.array([1.0, 0.0]))
    'AACAPwAAAAA='
    """
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _one(result: xr.Dataset, prompt: int) -> xr.Dataset:
    """One system of a result: the axes that are neither time nor token are taken at one place."""
    for name in [name for name in result.x.dims if name not in _KEPT]:
        size = result.sizes[name]
        place = prompt if name == "prompt" else 0
        require(0 <= place < size, "prompt", f"from 0 to {size - 1}", place)
        result = result.isel({name: place})
    if {"time", "layer"} <= set(result.x.dims):
        raise UserError("a recording has time or layers, not both; select one first")
    return result


_KEPT = ("time", "layer", "particle", "token", "coord")


def _thinned(count: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))


def _axes(x: np.ndarray) -> tuple[np.ndarray, float | None]:
    """Tokens on their first principal axes over all frames, and the share of their squares."""
    d = x.shape[-1]
    if d <= AXES:
        return x, None
    flat = x.reshape(-1, d)
    _, values, rows = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    share = float(np.sum(values[:AXES] ** 2) / max(float(np.sum(values**2)), 1e-300))
    shown = (flat - flat.mean(0)) @ rows[:AXES].T
    return (shown / max(float(np.abs(shown).max()), 1e-300)).reshape(*x.shape[:2], AXES), share


def _seen(x: np.ndarray, w: np.ndarray) -> dict[str, str]:
    """The instruments' numbers, frame by frame, as the library measures them."""
    tokens = xr.Dataset({"x": (("time", "particle", "coord"), x), "w": ("particle", w)})
    lenses = [Histogram(bins=BINS), OrderParameter(), MeanCosine(), ClusterCount(), ClusterLabels()]
    tokens = tokens.assign_coords(time=np.arange(len(x), dtype=float))
    measured = measure(tokens, lenses)
    return {lens.name: packed(_values(measured, lens.name)) for lens in lenses}


def _values(measured: xr.Dataset, name: str) -> np.ndarray:
    return np.asarray(measured[name].transpose("time", ...).values, float)


def _words(run: xr.Dataset, kept: np.ndarray) -> list[str] | None:
    if "word" not in run:
        return None
    return [str(word) for word in np.asarray(run.word.values).reshape(-1)[kept]]

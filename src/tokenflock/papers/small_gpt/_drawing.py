"""Curves with bands over seeds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.plots import look
from tokenflock.plots.bands import band
from tokenflock.plots.styles import Axes

STYLES = {"trained": (0, "-"), "untrained": (3, "--")}  # colour and line of each kind of weights


def both(
    ax: Axes, values: xr.DataArray, title: str = "", ylabel: str = "", top: float | None = None
) -> None:
    """Trained and untrained weights against the layer; `values` are (weights, seed, layer)."""
    with look(ax) as theme:
        for weights, (colour, line) in STYLES.items():
            band(ax, values.sel(weights=weights), "layer", theme.palette[colour], weights, line)
        ax.set(xlim=(0, float(values.layer[-1])), ylim=(0, top), ylabel=ylabel, title=title)
        if values.sizes["layer"] <= 8:
            ax.set_xticks(values.layer.values)


def spread(values: xr.DataArray | np.ndarray, digits: int = 2) -> str:
    """Seeds in words: '0.26 to 0.29'."""
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.{digits}f} to {high:.{digits}f}"

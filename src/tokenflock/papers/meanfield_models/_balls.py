"""Spheres on which the tokens of a picture share one colour."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock.plots import look, sphere
from tokenflock.plots.styles import Axes

VIEW: dict[str, Any] = {"azimuth": -60, "elevation": 20}  # e_1 to the right, e_2 behind, e_3 above


def ball(ax: Axes, x: np.ndarray, title: str, delta: float = 0.0) -> None:
    """Tokens x (n, 3), the far ones faint.

    Those whose cosine is at least 1 - delta are one disc.
    """
    frame = xr.Dataset({"x": (("time", "particle", "coord"), x[None])}, coords={"time": [0.0]})
    sphere(frame, ax=ax, delta=delta, **VIEW)
    with look(ax) as theme:
        for discs in ax.collections:
            if not hasattr(discs, "get_sizes"):
                continue
            depth = np.asarray(discs.get_facecolor())[:, 3]
            discs.set_facecolor(theme.palette[0])
            discs.set(alpha=depth)
        ax.set_title(title)

"""Names of version 0.1 that have a better one now."""

from __future__ import annotations

import warnings
from typing import Any

import xarray as xr

from tokenflock.probing.blocks import TrainedLayer
from tokenflock.probing.layers import half_layers


def __getattr__(name: str) -> Any:
    """`Block`, the former name of `TrainedLayer`."""
    if name != "Block":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "tokenflock.probing.Block is now called TrainedLayer", DeprecationWarning, stacklevel=4
    )
    return TrainedLayer


def halves(result: xr.Dataset) -> xr.Dataset:
    """The former name of `half_layers`."""
    warnings.warn(
        "tokenflock.probing.halves is now called half_layers", DeprecationWarning, stacklevel=3
    )
    return half_layers(result)

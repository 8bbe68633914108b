"""Names of version 0.1 that have a better one now."""

from __future__ import annotations

import warnings

import xarray as xr

from tokenflock.probing.layers import half_layers


def halves(result: xr.Dataset) -> xr.Dataset:
    """The former name of `half_layers`."""
    warnings.warn(
        "tokenflock.probing.halves is now called half_layers", DeprecationWarning, stacklevel=2
    )
    return half_layers(result)

"""Results as they are drawn."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from tokenflock.sweeps.reading import drawable
from tokenflock.sweeps.store import Store
from tokenflock.verbs.save_load import load


def opened(path: Path) -> xr.Dataset:
    """The result in a file, or what there is so far in the store of a sweep."""
    return drawable(Store(path).look()) if path.is_dir() else load(path)

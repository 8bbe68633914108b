"""Results that someone else may have sent: a damaged one ends in one line, whatever it does to the
library that reads it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import xarray as xr

from tokenflock.errors import UserError
from tokenflock.sweeps.reading import drawable
from tokenflock.sweeps.store import Store
from tokenflock.verbs.save_load import load

SECONDS = 20.0  # to open a file, which takes one
# opened in a process of its own: some damaged files make the library below crash or never end
_OPEN = "import sys, xarray; xarray.open_dataset(sys.argv[1], engine='h5netcdf').close()"


def opened(path: Path) -> xr.Dataset:
    """The result in a file or a store, or an error that says what is wrong with it."""
    if path.is_dir():
        return drawable(Store(path).look())
    if path.is_file():
        _try(path)
    return load(path)


def _try(path: Path) -> None:
    """Refuse a file at which a process that opens it crashes or hangs. Clear errors come later."""
    words = [sys.executable, "-c", _OPEN, str(path)]
    try:
        code = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        code = -1
    if code < 0:
        raise UserError(
            f"{path} is damaged: it cannot be opened; ask for it again, or make it anew"
        )

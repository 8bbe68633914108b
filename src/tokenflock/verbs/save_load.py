"""Results on disk: one netCDF file, written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

import xarray as xr

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.files import whole_stream, writable
from tokenflock.sweeps.reading import read
from tokenflock.sweeps.store import Store
from tokenflock.verbs.sound import require_sound, trusted


def save(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a result to one netCDF file. The file appears only once it is complete."""
    path = Path(path)
    writable(path)
    with whole_stream(path) as stream, without_cluster():
        result.to_netcdf(stream, engine="h5netcdf")
    trusted(path)
    return path


@contextmanager
def without_cluster() -> Iterator[None]:
    """Scope in which xarray does not ask whether a cluster of dask writes the file: where nobody
    has loaded `distributed` there is none, and loading it takes a second.
    """
    name = "dask.distributed"
    if "distributed" in sys.modules or name in sys.modules:
        yield
        return
    sys.modules[name] = cast(ModuleType, None)
    try:
        yield
    finally:
        del sys.modules[name]


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a result back, recipe included: a netCDF file, or the store (a folder) of a sweep.

    Of a sweep that is not complete, what is missing is NaN and `done` says what is there.

    A file that was not written here is first looked through in a process of its own, once: a
    damaged one ends in one clear line, even where the library below would crash or never end.
    """
    path = Path(path)
    if path.is_dir():
        return read(Store(path).look())
    if not path.is_file():
        raise UserError(f"{path} does not exist; write one with: tokenflock simulate --out {path}")
    require_sound(path)
    try:
        with xr.open_dataset(path, engine="h5netcdf") as lazy:
            require_memory(
                float(sum(variable.nbytes for variable in lazy.variables.values())),
                f"what {path} holds",
                "open a part of it with xarray.open_dataset",
            )
            return lazy.load()
    except UserError:
        raise
    except Exception as error:  # whatever the libraries below say of a damaged file
        reason = " ".join(str(error).split())[:300]
        if "signature not found" in reason:
            reason = "it does not begin as one"
        raise UserError(f"{path} is no netCDF file that tokenflock can read ({reason})") from None

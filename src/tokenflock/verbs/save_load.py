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

from tokenflock.engines.memory import allowed, refuse_size, require_memory
from tokenflock.errors import UserError
from tokenflock.files import whole_stream, writable
from tokenflock.sweeps.reading import read
from tokenflock.sweeps.store import Store
from tokenflock.verbs.hdf5_inspection import require_contained, trust

OBJECT = 128  # bytes of a text or a date in Python


def save(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a result to one netCDF file. The file appears only once it is complete."""
    path = Path(path)
    writable(path)
    with whole_stream(path) as stream, without_cluster():
        result.to_netcdf(stream, engine="h5netcdf")
    trust(path)
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


def load(path: str | os.PathLike[str], *, memory: float | None = None) -> xr.Dataset:
    """Read a result back, recipe included: a netCDF file, or the store (a folder) of a sweep.

    Of a sweep that is not complete, what is missing is NaN and `done` says what is there.

    memory: bytes that the result may take; 1 GiB, or four times the size of the file, unless given.

    The file may come from anybody: it runs no code, and what leads to another file is refused. One
    that was not written here is first inspected in a process of its own, once: a damaged one ends
    in one clear line, even where the library below would crash or never end.
    """
    path = Path(path)
    if path.is_dir():
        return read(Store(path).look(), memory)
    if not path.is_file():
        raise UserError(f"{path} does not exist; write one with: tokenflock simulate --out {path}")
    require_contained(path, memory)
    try:
        with xr.open_dataset(path, engine="h5netcdf", phony_dims="access") as lazy:
            size, most = path.stat().st_size, allowed(path.stat().st_size, memory)
            needed = float(sum(_bytes(variable) for variable in lazy.variables.values()))
            if needed > most:
                refuse_size(path, size, most)
            require_memory(
                needed, f"what {path} holds", "open a part of it with xarray.open_dataset"
            )
            return lazy.load()
    except UserError:
        raise
    except Exception as error:  # whatever the libraries below say of a damaged file
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{path} is no netCDF file that tokenflock can read ({reason})") from None


def _bytes(variable: xr.Variable) -> float:
    """Bytes of a variable once it is decoded: objects (texts, dates) take some each."""
    return float(variable.size * (OBJECT if variable.dtype == object else variable.dtype.itemsize))

"""The result in a store, as a Dataset: read into memory, or left on the disk until it is used."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.sweeps.arrays import ZarrArray
from tokenflock.sweeps.store import DONE, Store


def read(store: Store) -> xr.Dataset:
    """All of it, in memory. What is not computed yet is NaN, and `done` says what is."""
    size = float(sum(array.nbytes for array in store.arrays.values()))
    require_memory(size, f"what {store.path} holds", "open a part of it with xarray.open_zarr")
    if not store.prepared:
        raise UserError(f"{store.path} holds nothing yet: no block of it is done")
    arrays = {name: (array.dims, _whole(store, array), array.attrs) for name, array in _told(store)}
    return _dataset(store, arrays)


def lazily(store: Store) -> xr.Dataset:
    """The same, read from the disk where it is used; this takes zarr."""
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise UserError(
            f"what {store.path} holds is larger than the memory; to open it, install zarr: pip"
            " install 'tokenflock[sweeps]'"
        ) from None
    whole = xr.open_zarr(store.path, chunks=None, consolidated=True)
    return _finished(whole, store)


def _told(store: Store) -> list[tuple[str, ZarrArray]]:
    """The arrays that are told: not what is done, where all is."""
    complete = bool(store.progress.done.all())
    return [
        (name, array) for name, array in store.arrays.items() if not (complete and name == DONE)
    ]


def _dataset(store: Store, arrays: dict[str, Any]) -> xr.Dataset:
    coords = {name: array for name, array in arrays.items() if array[0] == (name,)}
    variables = {name: array for name, array in arrays.items() if name not in coords}
    return _finished(xr.Dataset(variables, coords, store.attrs), store)


def _finished(result: xr.Dataset, store: Store) -> xr.Dataset:
    """With the notes of a result, less those of the store."""
    attrs = {key: value for key, value in store.attrs.items() if key != "tokenflock"}
    attrs["seconds"] = round(store.progress.seconds, 4)
    result = result.drop_vars(DONE) if DONE in result and store.progress.done.all() else result
    result.attrs = attrs
    return result


def _whole(store: Store, array: ZarrArray) -> np.ndarray:
    """An array from its chunks."""
    values = np.full(array.shape, array.fill, array.dtype)
    counts = [range(-(-size // step)) for size, step in zip(array.shape, array.chunk)]
    for place in itertools.product(*counts):
        path = store.path / array.file(place)
        try:
            chunk = array.read(path)
        except FileNotFoundError:
            continue  # not computed yet
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror})") from None
        here = tuple(
            slice(at * step, min((at + 1) * step, size))
            for at, step, size in zip(place, array.chunk, array.shape)
        )
        inside = tuple(slice(each.stop - each.start) for each in here)
        values[here] = chunk[inside]
    return values

"""The result in a store, as a Dataset: read into memory, or left on the disk until it is used."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.sweeps.arrays import ZarrArray
from tokenflock.sweeps.own import inside
from tokenflock.sweeps.pooling import between, pooled
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
    for array in store.arrays.values():
        _refuse_odd(store, array)
    try:
        whole = xr.open_zarr(store.path, chunks=None, consolidated=True, decode_cf=False)
    except Exception as error:  # of all kinds that zarr and xarray have
        words = " ".join(str(error).split())
        raise UserError(f"{store.path} cannot be opened by zarr: {words:.200}") from None
    return _finished(whole, store)


def _refuse_odd(store: Store, array: ZarrArray) -> None:
    """Refuse links, pipes and files of another size among chunks, which zarr would follow, wait
    for and take into the memory.
    """
    waiting = [f"{array.name}/c"]
    while waiting:
        name = waiting.pop()
        if os.path.isdir(store.path / name) and inside(store.path, name, folder=True):
            waiting += [f"{name}/{each}" for each in os.listdir(store.path / name)]
            continue
        about = inside(store.path, name)
        if about is not None and about.st_size != array.chunk_bytes:
            raise UserError(
                f"{store.path / name} is damaged: it should have {array.chunk_bytes} bytes"
            )


def _told(store: Store) -> list[tuple[str, ZarrArray]]:
    """The arrays that are told: not what is done, where all is."""
    complete = bool(store.progress.done.all())
    return [
        (name, array) for name, array in store.arrays.items() if not (complete and name == DONE)
    ]


def _dataset(store: Store, arrays: dict[str, Any]) -> xr.Dataset:
    coords = {name: array for name, array in arrays.items() if array[0] == (name,)}
    variables = {name: array for name, array in arrays.items() if name not in coords}
    return pooled(_finished(xr.Dataset(variables, coords, store.attrs), store), store.repeats)


def _finished(result: xr.Dataset, store: Store) -> xr.Dataset:
    """With the notes of a result, less those of the store."""
    attrs = {key: value for key, value in store.attrs.items() if key != "tokenflock"}
    attrs["seconds"] = round(store.progress.seconds, 4)
    result = result.drop_vars(DONE) if DONE in result and store.progress.done.all() else result
    result.attrs = attrs
    return result


def _whole(store: Store, array: ZarrArray) -> np.ndarray:
    """An array from its chunks: one, or one for each block that is done."""
    if array.name not in store.of_blocks():
        return _chunk(store, array, (0,) * len(array.shape)).astype(array.dtype)
    values = np.full(array.shape, array.fill, array.dtype)
    for block in np.flatnonzero(store.progress.done).tolist():
        here = tuple(slice(each.start, each.stop) for each in store.cut.ranges(block))
        inner = tuple(slice(each.stop - each.start) for each in here)
        values[here] = _chunk(store, array, store.cut.place(block))[inner]
    return values


def _chunk(store: Store, array: ZarrArray, place: tuple[int, ...]) -> np.ndarray:
    """One chunk; what is not there is not computed yet."""
    try:
        return array.read(store.path, place)
    except FileNotFoundError:
        return np.full(array.chunk, array.fill, array.dtype)
    except OSError as error:
        path = store.path / array.file(place)
        raise UserError(f"{path} cannot be read ({error.strerror})") from None


def drawable(store: Store) -> xr.Dataset:
    """The result as it is drawn: means over kept repeats, taken block by block, and straight lines
    across grid points that a refined sweep has left out.
    """
    kept = [name for name, array in store.arrays.items() if "repeat" in array.dims[1:]]
    kept = [name for name in kept if "time" in store.arrays[name].dims]
    if kept:
        return _summed(store, kept)
    result = read(store)
    refined = isinstance(store.attrs.get("tokenflock", {}).get("refined"), bool)
    return between(result, store.cut.dims) if refined else result


def _summed(store: Store, kept: list[str]) -> xr.Dataset:
    """Means and standard errors of kept repeats: one block in memory at a time."""
    arrays: dict[str, Any] = {}
    for name, array in store.arrays.items():
        if name not in kept:
            if "repeat" not in array.dims and name != DONE:
                arrays[name] = array.dims, _whole(store, array), array.attrs
            continue
        axis = array.dims.index("repeat")
        dims = (*array.dims[:axis], *array.dims[axis + 1 :])
        shape = tuple(size for k, size in enumerate(array.shape) if k != axis)
        mean, error = np.full(shape, np.nan), np.full(shape, np.nan)
        for block in np.flatnonzero(store.progress.done).tolist():
            ranges = store.cut.ranges(block)
            chunk = _chunk(store, array, store.cut.place(block)).astype(float)
            chunk = chunk[tuple(slice(len(each)) for each in ranges)]
            here = tuple(slice(each.start, each.stop) for each in ranges)
            count = chunk.shape[axis]
            mean[here] = chunk.mean(axis=axis)
            if count > 1:
                error[here] = chunk.std(axis=axis, ddof=1) / count**0.5
        arrays[name] = dims, mean, array.attrs
        label = f"{array.attrs.get('long_name', name)}, standard error"
        arrays[f"{name}_error"] = dims, error, {"long_name": label}
    return _dataset(store, arrays)

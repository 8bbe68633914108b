"""The result in a store, as a Dataset: read into memory, or left on the disk until it is used."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.engines.memory import allowed, refuse_size, require_memory
from tokenflock.errors import UserError
from tokenflock.sweeps.arrays import ZarrArray
from tokenflock.sweeps.own import inside
from tokenflock.sweeps.pooling import between, pooled
from tokenflock.sweeps.store import DONE, Store


def read(store: Store, memory: float | None = None) -> xr.Dataset:
    """All of it, in memory. What is not computed yet is NaN, and `done` says what is."""
    size = float(sum(array.nbytes for array in store.arrays.values()))
    _require_room(store, size, memory)
    if not store.prepared:
        raise UserError(f"{store.path} holds nothing yet: no block of it is done")
    store.require_axes()
    blocks = {name: store.arrays[name] for name in store.of_blocks()}
    values = {name: np.full(array.shape, array.fill, array.dtype) for name, array in blocks.items()}
    for here, chunks in _blocks(store):
        for name, chunk in chunks.items():
            values[name][here] = chunk
    arrays = {
        name: (array.dims, values[name] if name in values else _axis(store, array), array.attrs)
        for name, array in _told(store)
    }
    return _dataset(store, arrays)


def _require_room(store: Store, needed: float, memory: float | None = None) -> None:
    """Raise if the numbers of a store take more memory than is allowed, or than there is."""
    if needed > allowed(0.0, memory):
        size = store.bytes_on_disk()
        if needed > (most := allowed(size, memory)):
            refuse_size(store.path, size, most)
    require_memory(needed, f"what {store.path} holds", "open a part of it with xarray.open_zarr")


def _blocks(store: Store) -> Iterator[tuple[tuple[slice, ...], dict[str, np.ndarray]]]:
    """(cells, name -> numbers) of each block that is done; a damaged one is an error."""
    for block in np.flatnonzero(store.progress.done).tolist():
        chunks = store.chunks(block)
        if chunks is None:
            raise UserError(
                f"block {block} of {store.path} is damaged; forget it with: tokenflock sweep"
                f" --repair {store.path}, and run it once more"
            )
        here = tuple(slice(each.start, each.stop) for each in store.cut.ranges(block))
        inner = tuple(slice(each.stop - each.start) for each in here)
        yield here, {name: chunk[inner] for name, chunk in chunks.items()}


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


def _axis(store: Store, array: ZarrArray) -> np.ndarray:
    """An array that has one chunk."""
    try:
        return array.read(store.path, (0,) * len(array.shape)).astype(array.dtype)
    except FileNotFoundError:
        return np.full(array.chunk, array.fill, array.dtype)
    except OSError as error:
        path = store.path / array.file(())
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
    store.require_axes()
    plain = [n for n, array in store.arrays.items() if "repeat" not in array.dims and n != DONE]
    shapes = {name: _without_repeats(store.arrays[name]) for name in kept}
    sums = sum(16.0 * math.prod(shape) for _, shape in shapes.values())
    _require_room(store, sums + sum(store.arrays[name].nbytes for name in plain))
    values = {
        name: np.full(shape, np.nan)
        for name, (_, shape) in shapes.items()
        for name in (name, f"{name}_error")
    }
    of_blocks = [name for name in plain if name in store.of_blocks()]
    values |= {
        name: np.full(store.arrays[name].shape, store.arrays[name].fill, store.arrays[name].dtype)
        for name in of_blocks
    }
    for here, chunks in _blocks(store):
        for name in of_blocks:
            values[name][here] = chunks[name]
        for name in kept:
            axis = store.arrays[name].dims.index("repeat")
            chunk = chunks[name].astype(float)
            count = chunk.shape[axis]
            values[name][here] = chunk.mean(axis=axis)
            if count > 1:
                values[f"{name}_error"][here] = chunk.std(axis=axis, ddof=1) / count**0.5
    arrays: dict[str, Any] = {}
    for name in (*plain, *kept):
        array = store.arrays[name]
        dims = shapes[name][0] if name in kept else array.dims
        arrays[name] = dims, values[name] if name in values else _axis(store, array), array.attrs
        if name in kept:
            label = f"{array.attrs.get('long_name', name)}, standard error"
            arrays[f"{name}_error"] = dims, values[f"{name}_error"], {"long_name": label}
    return _dataset(store, arrays)


def _without_repeats(array: ZarrArray) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """(axes, sizes) of an array without its axis of repeats."""
    pairs = [(dim, size) for dim, size in zip(array.dims, array.shape) if dim != "repeat"]
    return tuple(dim for dim, _ in pairs), tuple(size for _, size in pairs)

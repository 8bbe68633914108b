"""Arrays on disk as zarr (format 3) has them: a description in JSON, and chunks as plain numbers.

Nothing is packed, so that a chunk has one size, and no codec runs when a file of somebody else is
read.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock.errors import UserError
from tokenflock.files import parsed_json, received
from tokenflock.sweeps.own import inside

KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
DESCRIPTION = "zarr.json"  # the file that tells what a folder is
MOST_ARRAYS = 1000
MOST_AXES = 32
LARGEST = 2**26  # characters of a description: more is none of ours
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")
_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}]
_KEYS = {"name": "default", "configuration": {"separator": "/"}}


@dataclass(frozen=True)
class ZarrArray:
    """One array: its axes, its sizes, the size of its chunks, its numbers and its notes."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: str
    attrs: Mapping[str, Any]

    @property
    def numbers(self) -> np.dtype:
        """The numbers as they lie on disk."""
        return np.dtype(self.dtype).newbyteorder("<")

    @property
    def fill(self) -> Any:
        """What stands where nothing is written: not a number, or zero."""
        return np.nan if self.dtype in FLOATS else np.dtype(self.dtype).type(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.numbers.itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one chunk, which is the size of its file."""
        return math.prod(self.chunk) * self.numbers.itemsize

    def file(self, place: tuple[int, ...]) -> str:
        """Where a chunk lies in the folder of the store; axes beyond `place` have one chunk."""
        places = (*place, *(0,) * (len(self.shape) - len(place)))
        return "/".join((self.name, "c", *map(str, places)))

    def packed(self, values: np.ndarray) -> bytes:
        """The bytes of a chunk; one at the end of an axis is filled up."""
        if values.shape == self.chunk:
            return np.ascontiguousarray(values, self.numbers).tobytes()
        whole = np.full(self.chunk, self.fill, self.numbers)
        whole[tuple(slice(size) for size in values.shape)] = values
        return whole.tobytes()

    def read(self, root: Path, place: tuple[int, ...]) -> np.ndarray:
        """A chunk from its file in a store, or an error where the file is of another size."""
        name = self.file(place)
        about, path = inside(root, name), root / name
        if about is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        data = received(path, self.chunk_bytes) if about.st_size == self.chunk_bytes else b""
        if len(data) != self.chunk_bytes:
            raise UserError(f"{path} is damaged: it should have {self.chunk_bytes} bytes")
        return np.frombuffer(data, self.numbers).reshape(self.chunk)

    def describe(self) -> dict[str, Any]:
        """The description that zarr reads."""
        fill: Any = "NaN" if self.dtype in FLOATS else False if self.dtype == "bool" else 0
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunk)}},
            "chunk_key_encoding": _KEYS,
            "fill_value": fill,
            "codecs": _CODECS,
            "attributes": dict(self.attrs),
            "dimension_names": list(self.dims),
            "storage_transformers": [],
        }


def described(name: Any, plain: Any) -> ZarrArray:
    """The array that a description tells of; one that was not written here is an error."""
    try:
        chunk = plain["chunk_grid"]["configuration"]["chunk_shape"]
        sizes = plain["shape"], chunk, plain["dimension_names"]
        fine = (
            _NAME.fullmatch(name) is not None
            and plain["zarr_format"] == 3
            and plain["data_type"] in (*KINDS, *FLOATS)
            and plain["codecs"] == _CODECS
            and plain["chunk_key_encoding"] == _KEYS
            and all(type(size) is int and 0 < size < 2**40 for size in (*sizes[0], *chunk))
            and all(isinstance(dim, str) for dim in sizes[2])
            and len(set(sizes[2])) == len(sizes[2]) <= MOST_AXES
            and len({len(part) for part in sizes}) == 1
            and all(step <= size for size, step in zip(*sizes[:2]))
            and math.prod(sizes[0]) < 2**62
            and isinstance(plain["attributes"], dict)
        )
    except (KeyError, TypeError, AttributeError):
        fine = False
    if not fine:
        raise UserError(f"the array {name!r:.80} is none that a sweep of tokenflock wrote")
    shape, chunk, dims = map(tuple, sizes)
    return ZarrArray(name, dims, shape, chunk, plain["data_type"], plain["attributes"])


def group(attrs: Mapping[str, Any], arrays: Mapping[str, ZarrArray]) -> str:
    """The description of a folder of arrays, with theirs in it, so that one file tells all."""
    metadata = {name: array.describe() for name, array in arrays.items()}
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": dict(attrs),
            "consolidated_metadata": {
                "kind": "inline",
                "must_understand": False,
                "metadata": metadata,
            },
        }
    )


def read_group(root: Path) -> tuple[dict[str, Any], dict[str, ZarrArray]]:
    """(attributes, arrays) of a folder, checked before anything is believed."""
    path = root / DESCRIPTION
    about = inside(root, DESCRIPTION)
    try:
        text = received(path, min(LARGEST, about.st_size if about else 0))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    try:
        plain: Any = parsed_json(text, path)
        attrs = plain["attributes"]
        told = plain["consolidated_metadata"]["metadata"]
        fine = isinstance(attrs, dict) and isinstance(told, dict) and len(told) < MOST_ARRAYS
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise UserError(f"{path} does not describe a sweep of tokenflock")
    return attrs, {name: described(name, each) for name, each in told.items()}

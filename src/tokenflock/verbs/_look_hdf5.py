"""Look through an HDF5 file that anybody may have made, and follow nothing that leads out of it.

This is also a program, run in a process of its own, because some damaged files make HDF5 crash or
never end. It imports nothing of tokenflock, so that it starts quickly.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from typing import Any

import h5netcdf
import h5py
import numpy as np

SPARE = 2**28  # bytes of memory for HDF5 itself
BLOCK = 64  # rows of texts that are read at once
MOST_NAMES = 100_000  # links and attributes: each takes some kB in Python
OBJECT = 64  # bytes of a Python object beside its text


class RefusedError(Exception):
    """The file does what a file of numbers does not need to do."""


class Look:
    """One look through a file, which counts the memory that reading all of it would take."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.bytes = 0.0
        self.names = 0

    def file(self, path: str) -> None:
        """Raise `RefusedError` unless everything lies in the file itself and fits in the memory."""
        with h5py.File(path, "r") as file:
            seen: set[h5py.Group] = set()
            waiting: list[tuple[str, h5py.Group]] = [("", file)]
            while waiting:
                where, group = waiting.pop()
                if group in seen:
                    continue
                seen.add(group)
                self._attributes(group)
                for name in map(str, group):
                    self._count_name()
                    member = self._member(group, name, f"{where}/{name}")
                    if isinstance(member, h5py.Group):
                        waiting.append((f"{where}/{name}", member))
                    elif isinstance(member, h5py.Dataset):
                        self._dataset(member, f"{where}/{name}")
        h5netcdf.File(path, "r", phony_dims="access").close()  # refuses here what it refuses later

    def _member(self, group: h5py.Group, name: str, where: str) -> Any:
        """What a name of a group leads to, in the same file."""
        try:
            link = group.get(name, getlink=True)
        except TypeError:  # a kind of link that needs a library of its own
            link = None
        if isinstance(link, h5py.ExternalLink):
            raise RefusedError(f"{where} is a link to another file")
        if not isinstance(link, h5py.HardLink):
            raise RefusedError(f"{where} is a symbolic link")
        return group[name]

    def _dataset(self, data: h5py.Dataset, where: str) -> None:
        """Look at where the numbers of a dataset lie before anything else is done with it."""
        layout = data.id.get_create_plist()
        if layout.get_layout() == h5py.h5d.VIRTUAL:
            raise RefusedError(f"{where} is a virtual dataset, which reads others")
        if layout.get_external_count():
            raise RefusedError(f"{where} keeps its numbers in another file")
        chunked = layout.get_layout() == h5py.h5d.CHUNKED
        # a whole chunk is unpacked, be it larger than the dataset
        numbers = max(math.prod(data.shape or ()), math.prod(layout.get_chunk()) if chunked else 0)
        texts = data.dtype.hasobject
        self._take(numbers * (data.id.get_type().get_size() + OBJECT * texts), where)
        if texts and data.shape is not None:
            for row in [data[()]] if not data.shape else _rows(data):
                self._take(_length(row), where)
        elif chunked:
            data[
                ()
            ]  # a packed chunk may hold more than it should: unpack it where memory is limited
        self._attributes(data)

    def _attributes(self, item: Any) -> None:
        for name in item.attrs:
            self._count_name()
            self._take(_length(np.asarray(item.attrs[name])), f"attribute {name!r}")

    def _count_name(self) -> None:
        self.names += 1
        if self.names > MOST_NAMES:
            raise RefusedError(f"it has more than {MOST_NAMES:,} names")

    def _take(self, size: float, where: str) -> None:
        self.bytes += size
        if self.bytes > self.most:
            raise MemoryError(where)


def _rows(data: h5py.Dataset) -> Any:
    for start in range(0, data.shape[0], BLOCK):
        yield data[start : start + BLOCK]


def _length(values: Any) -> float:
    """Bytes of texts and of numbers of no fixed length."""
    names = values.dtype.names if isinstance(values, (np.ndarray, np.void)) else None
    if names:
        return sum(_length(values[name]) for name in names)
    if isinstance(values, np.ndarray) and values.dtype.hasobject:
        return float(sum(_length(each) for each in values.flat))
    return float(len(values) if isinstance(values, (bytes, str)) else getattr(values, "nbytes", 64))


def look_through(path: str, most: float) -> dict[str, str]:
    """Return {} for a file that can be read, else {"reason": ...} or {"memory": ...}."""
    try:
        Look(most).file(path)
    except RefusedError as error:
        return {"refused": str(error)}
    except MemoryError as error:
        return {"memory": str(error)}
    except Exception as error:  # whatever the libraries below say of a damaged file
        return {"damaged": " ".join(str(error).split())[:300]}
    return {}


def _limit(seconds: int, most: float) -> None:
    """Limit the time and the memory of this process, where the system can."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with open("/proc/self/statm", encoding="ascii") as numbers:
            taken = int(numbers.read().split()[0]) * resource.getpagesize()
        room = int(taken + 3 * most + SPARE)  # HDF5 and Python hold a text at once
        resource.setrlimit(resource.RLIMIT_AS, (room, room))


if __name__ == "__main__":
    _limit(int(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps(look_through(sys.argv[1], float(sys.argv[3]))))

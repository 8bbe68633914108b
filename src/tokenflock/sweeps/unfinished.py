"""The block that runs now: its finished systems, on disk until the block is done."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tokenflock.files import whole

Values = dict[str, np.ndarray]
SECONDS = 2.0  # how often what is done is written
SHARE = 20  # writing takes at most one part in so many of the time
MOST = 2**28  # bytes of single systems that are kept; beyond it, whole blocks only


@dataclass
class Group:
    """Systems that run at once, and what is known of each of them."""

    known: np.ndarray  # (systems,), True where a system is done
    values: Values = field(default_factory=dict)  # name -> (systems, frames, ...)

    @property
    def missing(self) -> np.ndarray:
        """The numbers of the systems that are still to run."""
        return np.flatnonzero(~self.known)

    def put(self, rows: np.ndarray, values: Values) -> None:
        """Keep finished systems."""
        for name, value in values.items():
            if name not in self.values:
                self.values[name] = np.empty((len(self.known), *value.shape[1:]), value.dtype)
            self.values[name][rows] = value
        self.known[rows] = True


class Unfinished:
    """Finished systems of the block that runs, in memory and, now and then, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.block = -1
        self.group = Group(np.zeros(0, bool))
        self.due = time.monotonic() + SECONDS

    def open(self, block: int, systems: int) -> Group:
        """A block that runs now, with those of its systems that are done already."""
        self.block, self.group = block, Group(np.zeros(systems, bool))
        rows, values = self._read(block)
        if len(rows) and rows.max() < systems:
            self.group.put(rows, values)
        return self.group

    def keep(self, rows: np.ndarray, values: Values) -> None:
        """Keep finished systems of the block; now and then write what there is."""
        size = sum(array.nbytes // max(len(array), 1) for array in values.values())
        if size * len(self.group.known) <= MOST:
            self.group.put(rows, values)
        if time.monotonic() > self.due:
            self.write()

    def write(self) -> None:
        """Write all that is done, whole or not at all."""
        done = np.flatnonzero(self.group.known)
        if not len(done):
            return
        began = time.monotonic()
        data = {f"~{name}": array[done] for name, array in self.group.values.items()}
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, block=np.asarray(self.block), rows=done, **data)
        with whole(self.path) as part:
            part.write_bytes(packed.getbuffer())
        self.due = time.monotonic() + max(SECONDS, SHARE * (time.monotonic() - began))

    def close(self) -> None:
        """The block is complete and written."""
        self.group = Group(np.zeros(0, bool))
        self.path.unlink(missing_ok=True)

    def _read(self, block: int) -> tuple[np.ndarray, Values]:
        """(numbers, values) of the systems of a block that the file holds; a file that cannot be
        read holds none, for it only saves time.
        """
        nothing: tuple[np.ndarray, Values] = np.zeros(0, int), {}
        if not self.path.exists():
            return nothing
        try:
            with zipfile.ZipFile(self.path) as packed:
                if sum(part.file_size for part in packed.infolist()) > 2 * MOST:
                    return nothing
            with np.load(self.path, allow_pickle=False) as held:
                if int(held["block"]) != block:
                    return nothing
                rows = held["rows"]
                values = {name[1:]: held[name] for name in held.files if name.startswith("~")}
        except (ValueError, OSError, EOFError, KeyError, TypeError, zipfile.BadZipFile):
            return nothing
        sound = rows.ndim == 1 and rows.dtype.kind == "i" and bool((rows >= 0).all())
        sound = sound and all(len(array) == len(rows) for array in values.values())
        return (rows, values) if sound else nothing

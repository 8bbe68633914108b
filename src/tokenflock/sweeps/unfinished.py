"""The block that runs now: its finished systems, on disk until the block is done."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tokenflock.errors import UserError
from tokenflock.files import put, received
from tokenflock.sweeps.log import NEW
from tokenflock.sweeps.own import inside

Values = dict[str, np.ndarray]
SECONDS = 2.0  # how often what is done is written
SHARE = 20  # writing takes at most one part in so many of the time
MOST = 2**28  # bytes of single systems that are kept; beyond it, whole blocks only
SPARE = 2**20  # bytes of a file beyond its numbers


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
        self.found = False  # whether some of the group came from the file
        self.due = time.monotonic() + SECONDS

    def open(self, block: int, systems: int, names: Collection[str] | None = None) -> Group:
        """A block that runs now, with those of its systems that are done already; of these names,
        where they are known.
        """
        self.block, self.group = block, Group(np.zeros(systems, bool))
        rows, values = self._read(block)
        fits = len(rows) > 0 and rows[-1] < systems and _each(values) * systems <= MOST
        self.found = bool(fits and (names is None or set(values) == set(names)))
        if self.found:
            self.group.put(rows, values)
        return self.group

    def keep(self, rows: np.ndarray, values: Values) -> None:
        """Keep finished systems of the block; now and then write what there is."""
        if self.found and _kinds(values) != _kinds(self.group.values):
            self.doubt()
            raise UserError(
                f"{self.path} held systems of another kind, and is removed; run it once more"
            )
        if _each(values) * len(self.group.known) <= MOST:
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
        new = self.path.with_name(NEW)
        new.unlink(missing_ok=True)  # it may be a link
        put(self.path, packed.getvalue(), new)
        self.due = time.monotonic() + max(SECONDS, SHARE * (time.monotonic() - began))

    def close(self) -> None:
        """The block is complete and written."""
        self.group = Group(np.zeros(0, bool))
        self.path.unlink(missing_ok=True)

    def doubt(self) -> None:
        """The block failed: where systems came from the file, that may be why, so it goes."""
        if self.found:
            self.close()
        self.found = False

    def _read(self, block: int) -> tuple[np.ndarray, Values]:
        """(numbers, values) of the systems of a block that the file holds; a file that cannot be
        read holds none, for it only saves time.
        """
        nothing: tuple[np.ndarray, Values] = np.zeros(0, int), {}
        try:
            about = inside(self.path.parent, self.path.name)
            if about is None:
                return nothing
            data = io.BytesIO(received(self.path, min(2 * MOST + SPARE, about.st_size)))
            with zipfile.ZipFile(data) as packed:
                if sum(part.file_size for part in packed.infolist()) > 2 * MOST:
                    return nothing
            with np.load(data, allow_pickle=False) as held:
                if int(held["block"]) != block:
                    return nothing
                rows = held["rows"]
                values = {name[1:]: held[name] for name in held.files if name.startswith("~")}
            return (rows, values) if _sound(rows, values) else nothing
        except Exception:  # of all kinds that zipfile, zlib and NumPy have
            return nothing


def _sound(rows: np.ndarray, values: Values) -> bool:
    """Whether these are numbers of systems, each of them once, and as many values of each name."""
    counted = rows.ndim == 1 and rows.dtype.kind == "i" and bool((rows >= 0).all())
    numbers = all(
        array.ndim and len(array) == len(rows) and array.dtype.kind in "biuf"
        for array in values.values()
    )
    return counted and numbers and len(values) > 0 and bool((np.diff(rows) > 0).all())


def _each(values: Values) -> int:
    """Bytes of one system."""
    return sum(array.nbytes // max(len(array), 1) for array in values.values())


def _kinds(values: Values) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Of what shape and kind the values of one system are."""
    return {name: (array.shape[1:], array.dtype) for name, array in values.items()}

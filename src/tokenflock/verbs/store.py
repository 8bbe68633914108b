"""What is done of a long run, on disk until it is complete."""

from __future__ import annotations

import hashlib
import io
import os
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock.errors import UserError
from tokenflock.files import alone, whole, writable

Cell = tuple[int, ...]
Values = dict[str, np.ndarray]
SECONDS = 2.0  # how often what is done is written
SHARE = 20  # writing takes at most one part in so many of the time
MOST = 2**28  # bytes of single systems that are kept; beyond it, whole cells only


@dataclass
class Group:
    """Cells that run at once, and what is known of each of their systems."""

    cells: Sequence[Cell]
    repeats: int
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

    def parts(self) -> Iterator[tuple[Cell, np.ndarray, Values]]:
        """Of every cell with finished systems: which they are, and their values."""
        for k, cell in enumerate(self.cells):
            first = k * self.repeats
            done = np.flatnonzero(self.known[first : first + self.repeats])
            if len(done):
                here = first + done
                yield cell, done, {name: array[here] for name, array in self.values.items()}


class Store:
    """Finished cells, and finished systems of the cells that run, in memory and, if a path is
    given, in the file `path`, which an interrupted run leaves behind.

    The file belongs to one recipe; the same command finds it and goes on from there. Used as a
    context it keeps other processes away from the file.
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        self.path = None if path is None else Path(path)
        self.mark = ""
        self.cells: dict[Cell, Values] = {}
        self.systems: dict[Cell, tuple[np.ndarray, Values]] = {}  # of the file
        self.group: Group | None = None
        self.due = time.monotonic() + SECONDS
        self.lock = ExitStack()

    def __enter__(self) -> Store:
        if self.path is not None:
            writable(self.path)
            self.lock.enter_context(alone(self.path, "adding to this run"))
        return self

    def __exit__(self, *_: Any) -> None:
        self.lock.close()

    def begin(self, recipe: str) -> None:
        """Go on with the run of this recipe, or begin it."""
        self.mark = hashlib.sha256(recipe.encode()).hexdigest()
        if self.path is not None and self.path.exists():
            self._read()

    def __contains__(self, cell: Cell) -> bool:
        return cell in self.cells

    def __getitem__(self, cell: Cell) -> Values:
        return self.cells[cell]

    def values(self) -> Iterator[Values]:
        """The values of every cell that is done."""
        return iter(self.cells.values())

    def open(self, cells: Sequence[Cell], repeats: int) -> Group:
        """Cells that run now, with those of their systems that are done already."""
        self.group = Group(cells, repeats, np.zeros(len(cells) * repeats, bool))
        for k, cell in enumerate(cells):
            if cell in self.systems:
                done, values = self.systems.pop(cell)
                self.group.put(k * repeats + done, values)
        return self.group

    def keep(self, rows: np.ndarray, values: Values) -> None:
        """Keep finished systems of the cells that run; now and then write what there is."""
        size = sum(array.nbytes // max(len(array), 1) for array in values.values())
        if self.path is not None and self.group is not None:
            if size * len(self.group.known) <= MOST:
                self.group.put(rows, values)
            self._write_when_due()

    def put(self, cell: Cell, values: Values) -> None:
        """Keep a finished cell."""
        self.cells[cell] = values

    def close(self) -> None:
        """The cells that ran are complete, and put."""
        self.group = None
        self._write_when_due()

    def write(self) -> None:
        """Write all that is done, whole or not at all."""
        if self.path is None:
            return
        began = time.monotonic()
        data = {
            f"{_text(cell)}|{name}": array
            for cell, values in self.cells.items()
            for name, array in values.items()
        }
        waiting = [(cell, *kept) for cell, kept in self.systems.items()]
        running = [] if self.group is None else list(self.group.parts())
        for cell, done, values in (*waiting, *running):
            if cell not in self.cells:
                data |= {f"{_text(cell)}~": done}
                data |= {f"{_text(cell)}~{name}": array for name, array in values.items()}
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, mark=np.asarray(self.mark), **data)
        with whole(self.path) as part:
            part.write_bytes(packed.getbuffer())
        self.due = time.monotonic() + max(SECONDS, SHARE * (time.monotonic() - began))

    def remove(self) -> None:
        """The result is safe: the file has done its work."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _write_when_due(self) -> None:
        if self.path is not None and time.monotonic() > self.due:
            self.write()

    def _read(self) -> None:
        if self.path is None:
            return
        try:
            with np.load(self.path, allow_pickle=False) as loaded:
                held = {name: loaded[name] for name in loaded.files}
            mark = str(held.pop("mark"))
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile):
            raise UserError(
                f"{self.path} is not the beginning of a run; delete it, or choose another output"
            ) from None
        if mark != self.mark:
            raise UserError(
                f"{self.path} holds the beginning of another run; delete it, or choose another"
                " output"
            )
        for key, value in held.items():
            cell, split, name = _split(key)
            if split == "|":
                self.cells.setdefault(cell, {})[name] = value
            elif split == "~" and not name:
                inside = {
                    other.partition("~")[2]: held[other]
                    for other in held
                    if other.startswith(key) and other != key
                }
                self.systems[cell] = value, inside


def _text(cell: Cell) -> str:
    return ",".join(map(str, cell))


def _split(key: str) -> tuple[Cell, str, str]:
    """(cell, '|' of a finished cell or '~' of finished systems, name)."""
    split = "|" if "|" in key else "~"
    cell, _, name = key.partition(split)
    return tuple(int(k) for k in cell.split(",")) if cell else (), split, name

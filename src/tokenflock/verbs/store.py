"""What is done of a long run, on disk until it is complete."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tokenflock.errors import UserError
from tokenflock.files import whole

Cell = tuple[int, ...]
SECONDS = 2.0  # how often finished cells are written


class Store:
    """Finished cells, in memory and, if a path is given, in the file `path`, which an interrupted
    run leaves behind.

    The file belongs to one recipe; the same command finds it and goes on from there.
    """

    def __init__(self, path: str | os.PathLike[str] | None, recipe: str):
        self.path = None if path is None else Path(path)
        self.mark = hashlib.sha256(recipe.encode()).hexdigest()
        self.cells: dict[Cell, dict[str, np.ndarray]] = {}
        self.written = time.monotonic()
        if self.path is not None and self.path.exists():
            self._read()

    def __contains__(self, cell: Cell) -> bool:
        return cell in self.cells

    def __getitem__(self, cell: Cell) -> dict[str, np.ndarray]:
        return self.cells[cell]

    def values(self) -> Iterator[dict[str, np.ndarray]]:
        return iter(self.cells.values())

    def put(self, cell: Cell, values: dict[str, np.ndarray]) -> None:
        """Keep a finished cell; now and then write what there is."""
        self.cells[cell] = values
        if self.path is not None and time.monotonic() - self.written > SECONDS:
            self.write()

    def write(self) -> None:
        """Write all finished cells, whole or not at all."""
        if self.path is None:
            return
        data = {
            f"{','.join(map(str, cell))}|{name}": one
            for cell, values in self.cells.items()
            for name, one in values.items()
        }
        with whole(self.path) as part, open(part, "wb") as file:
            np.savez(file, mark=self.mark, **data)
        self.written = time.monotonic()

    def close(self) -> None:
        """The run is complete: the file has done its work."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            loaded = np.load(self.path, allow_pickle=False)
        except (ValueError, OSError, EOFError):
            raise UserError(
                f"{self.path} is not the beginning of a run; delete it, or choose another output"
            ) from None
        with loaded as found:
            if str(found["mark"]) != self.mark:
                raise UserError(
                    f"{self.path} holds the beginning of another run; delete it, or choose another"
                    " output"
                )
            for key in found.files:
                if "|" in key:
                    cell, _, name = key.partition("|")
                    place = tuple(int(k) for k in cell.split(",")) if cell else ()
                    self.cells.setdefault(place, {})[name] = found[key]

"""A store looked at from outside: how far it is, what is damaged, and mending it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tokenflock.errors import UserError
from tokenflock.locks import alone
from tokenflock.sweeps.store import Store


@dataclass(frozen=True)
class Status:
    """How far a sweep is, by what its store says."""

    blocks: int
    done: int
    cells: int  # done
    of_cells: int
    failed: dict[int, str]  # block -> its last error
    seconds: float  # of computing so far
    running: bool  # whether a process is adding to it now
    title: str

    @property
    def complete(self) -> bool:
        """Whether all of it is there."""
        return self.done == self.blocks

    @property
    def left(self) -> float:
        """Seconds of computing that the rest will take, one block after the other."""
        return self.seconds / self.done * (self.blocks - self.done) if self.done else float("nan")


def status(path: str | os.PathLike[str]) -> Status:
    """How far the sweep of a store is; it may be running."""
    store = Store(path).look()
    done = store.progress.done
    return Status(
        len(done),
        int(done.sum()),
        int(store.cut.sizes()[done].sum()),
        store.cut.total,
        store.progress.failed,
        store.progress.seconds,
        _busy(store),
        str(store.attrs.get("title", "")),
    )


def check(path: str | os.PathLike[str]) -> list[int]:
    """Return the damaged blocks of a store, which is read in full; nothing is changed. Damaged axes
    are an error.
    """
    store = Store(path).look()
    store.require_axes()
    return store.damaged()


def repair(path: str | os.PathLike[str]) -> list[int]:
    """Find damaged blocks, and have them computed again by the next run; lines of the log that are
    damaged go. Damaged axes are written with the next block, so one is computed again for them.
    Returns the blocks to compute again.
    """
    Store(path).look(mend=True)  # refuses what is no store before anything is made
    with Store(path) as store:
        store.look(mend=True)
        damaged = store.damaged()
        if store.axes_damaged() and not damaged and store.progress.done.any():
            damaged = [int(store.progress.done.argmax())]
        store.mend(damaged)
    return damaged


def _busy(store: Store) -> bool:
    """Whether a process holds the store."""
    try:
        with alone(store.path, "adding to this run"):
            return False
    except UserError:
        return True

"""Where a sweep looks closer: more grid points where the field bends, more repeats where it is
noisy.

All of it follows from what the store holds, so a sweep that was stopped goes on in the same way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tokenflock.errors import UserError, require
from tokenflock.sweeps.cut import Cell, Cut
from tokenflock.sweeps.pooling import BATCH, pool
from tokenflock.sweeps.store import Store
from tokenflock.verbs.asked import Request


@dataclass(frozen=True)
class Refine:
    """What is refined, and how far.

    bend: grid points are added between neighbours whose means differ by more than this at any time.
      The first points are each `every`-th value of every axis, and its last one.
    error: repeats are added, as many again, while the standard error is larger than this at any
      time; at most `most` times as many in all.
    observable: whose means and errors count; the first unless given.
    """

    bend: float | None = None
    every: int = 4
    error: float | None = None
    most: int = 8
    observable: str | None = None

    KINDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "bend": ("float",),
        "every": ("int",),
        "error": ("float",),
        "most": ("int",),
        "observable": ("str",),
    }

    def __post_init__(self) -> None:
        fine = self.bend is not None or self.error is not None
        require(fine, "refine", "by bend, by error or both", "neither", "write e.g. bend = 0.1")
        require(self.bend is None or self.bend > 0, "bend", "positive", self.bend)
        require(self.error is None or self.error > 0, "error", "positive", self.error)
        power = self.every >= 1 and self.every & (self.every - 1) == 0
        require(power, "every", "a power of two, 1, 2, 4, ...", self.every)
        require(1 <= self.most <= 10_000, "most", "from 1 to 10,000", self.most)

    @property
    def strides(self) -> list[int]:
        """The distances of grid points, from coarse to fine."""
        first = 1 if self.bend is None else self.every
        return [first >> k for k in range(first.bit_length())]

    @property
    def batches(self) -> int:
        """How many batches of repeats a cell has at most."""
        return 1 if self.error is None else self.most

    def check(self, asked: Request) -> None:
        """Refuse what cannot be refined."""
        simple = asked.plan.until is None and not asked.summary.keep
        simple = simple and (self.error is None or not asked.summary.quantiles)
        require(simple, "refine", "of means, without keep, quantiles and events", "them")
        require(self.error is None or asked.plan.repeats > 1, "repeats", "2 or more", 1)
        self.named(asked)

    def named(self, asked: Request) -> str:
        """The observable that counts."""
        names = [observable.name for observable in asked.plan.observe]
        name = names[0] if self.observable is None else self.observable.replace("-", "_")
        require(name in names, "observable", f"one of {', '.join(names)}", name)
        return name

    def cut(self, asked: Request) -> Cut:
        """Single cells, each batch of their repeats by itself."""
        names = tuple(axis.name for axis in asked.plan.axes)
        shape = asked.plan.shape
        if self.error is not None:
            names, shape = (*names, BATCH), (*shape, self.batches)
        return Cut(names, shape, (1,) * len(shape))

    def recipe(self) -> dict[str, Any]:
        """The same as data."""
        return {key: getattr(self, key) for key in self.KINDS}


@dataclass(frozen=True)
class Closer:
    """A store that is refined: what is to be computed next."""

    refine: Refine
    store: Store
    name: str

    @cached_property
    def _known(self) -> dict[tuple[str, int], np.ndarray]:
        return {}

    @property
    def _grid(self) -> tuple[int, ...]:
        shape = self.store.cut.shape
        return shape[:-1] if self.refine.error is not None else shape

    def missing(self) -> list[int]:
        """The blocks of the first round that is not complete; empty where all is fine enough.

        A block that failed is taken as it is: the field is not known there.
        """
        for blocks in self._rounds():
            done = self.store.progress.done
            left = [k for k in blocks if not done[k] and k not in self.store.progress.failed]
            if left:
                return left
        return []

    def _rounds(self) -> Iterator[list[int]]:
        """What each round computes, given that the ones before it are complete."""
        strides = self.refine.strides
        wanted = dict.fromkeys(itertools.product(*self._lattice(strides[0])))
        yield [self._block(cell, 0) for cell in wanted]
        for coarse, fine in itertools.pairwise(strides):
            wanted |= dict.fromkeys(self._between(coarse, fine))
            yield [self._block(cell, 0) for cell in wanted]
        cells = list(wanted)
        for batch in range(1, self.refine.batches):
            cells = [cell for cell in cells if self._noisy(cell, batch)]
            yield [self._block(cell, batch) for cell in cells]

    def _lattice(self, stride: int) -> list[list[int]]:
        """The places of grid points along each axis."""
        return [sorted({*range(0, size, stride), size - 1}) for size in self._grid]

    def _between(self, coarse: int, fine: int) -> Iterator[Cell]:
        """The finer points in every box of the coarse lattice across which the field bends."""
        finer = self._lattice(fine)
        edges = [list(itertools.pairwise(places)) or [(0, 0)] for places in self._lattice(coarse)]
        for box in itertools.product(*edges):
            corners = [self._mean(cell) for cell in dict.fromkeys(itertools.product(*box))]
            there = [corner for corner in corners if corner is not None]
            if len(there) < len(corners) or np.ptp(np.stack(there), axis=0).max() <= (
                self.refine.bend or 0
            ):
                continue
            inside = [
                [place for place in places if low <= place <= high]
                for places, (low, high) in zip(finer, box)
            ]
            yield from itertools.product(*inside)

    def _block(self, cell: Cell, batch: int) -> int:
        cell = (*cell, batch) if self.refine.error is not None else cell
        return self.store.cut.block(cell)

    def _mean(self, cell: Cell) -> np.ndarray | None:
        """The means of the first batch of a cell."""
        return self._read(self.name, self._block(cell, 0))

    def _noisy(self, cell: Cell, batches: int) -> bool:
        """Whether the error of so many batches of a cell is too large."""
        blocks = [self._block(cell, batch) for batch in range(batches)]
        tables = [
            [self._read(name, block) for block in blocks]
            for name in (self.name, f"{self.name}_error")
        ]
        known = [[each for each in table if each is not None] for table in tables]
        if min(map(len, known)) < batches:
            return False
        means, errors = map(np.stack, known)
        return bool(pool(means, errors, self.store.repeats)[1].max() > (self.refine.error or 0))

    def _read(self, name: str, block: int) -> np.ndarray | None:
        if not self.store.progress.done[block]:
            return None
        if (name, block) not in self._known:
            array = self.store.arrays[name]
            try:
                chunk = array.read(self.store.path, self.store.cut.place(block))
            except OSError:
                raise UserError(
                    f"{self.store.path} is damaged; mend it with: tokenflock sweep --repair"
                    f" {self.store.path}"
                ) from None
            self._known[name, block] = chunk.reshape(chunk.shape[len(self.store.cut.shape) :])
        return self._known[name, block]

"""A grid of cells, cut into blocks: what is computed, written and lost as one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tokenflock.errors import require

MOST_BLOCKS = 2**24  # each has a line in the log, and files
Cell = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """The cells of a grid in rectangles of one size; those at the end of an axis may be smaller.

    >>> cut = Cut(("n", "beta"), (2, 5), (1, 3))
    >>> len(cut), cut.cells(1), cut.block((1, 4))
    (4, [(0, 3), (0, 4)], 3)
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    chunk: tuple[int, ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.shape, self.chunk))

    def __len__(self) -> int:
        return math.prod(self.counts)

    @property
    def sound(self) -> bool:
        """Whether there are so few blocks that they can be counted one by one."""
        fits = all(0 < step <= size for size, step in zip(self.shape, self.chunk))
        return fits and self.total < 2**62 and math.prod(self.counts) <= MOST_BLOCKS

    def check(self) -> None:
        """Refuse more blocks than can be kept, before anything of their number is made."""
        blocks = math.prod(self.counts)
        require(
            self.sound,
            "cells",
            f"so many that there are at most {MOST_BLOCKS:,} blocks",
            f"{blocks:.3g} blocks for {self.total:.3g} cells",
            "write larger cells, or fewer values in over; with refine each cell, and each batch of"
            " its repeats (most), is a block",
        )

    @property
    def total(self) -> int:
        """How many cells the grid has."""
        return math.prod(self.shape)

    def place(self, block: int) -> tuple[int, ...]:
        """Where a block lies among the blocks."""
        place = []
        for count in reversed(self.counts):
            block, at = divmod(block, count)
            place.append(at)
        return tuple(reversed(place))

    def ranges(self, block: int) -> tuple[range, ...]:
        """The cells of a block along each axis."""
        return tuple(
            range(at * step, min((at + 1) * step, size))
            for at, step, size in zip(self.place(block), self.chunk, self.shape)
        )

    def cells(self, block: int) -> list[Cell]:
        """The cells of a block, the last axis fastest."""
        return list(itertools.product(*self.ranges(block)))

    def size(self, block: int) -> int:
        """How many cells a block has: the whole rectangle, less what lies beyond the grid."""
        return math.prod(map(len, self.ranges(block)))

    def sizes(self) -> np.ndarray:
        """How many cells each block has, (blocks,)."""
        sizes = np.ones(1, int)
        for size, step, count in zip(self.shape, self.chunk, self.counts):
            along = np.full(count, step)
            along[-1] = size - (count - 1) * step
            sizes = np.multiply.outer(sizes, along).ravel()
        return sizes

    def block(self, cell: Cell) -> int:
        """The block that a cell lies in."""
        number = 0
        for at, step, count in zip(cell, self.chunk, self.counts):
            number = number * count + at // step
        return number


def rectangle(shape: Sequence[int], single: Sequence[bool], cells: int) -> tuple[int, ...]:
    """The size of blocks of at most so many cells: long along the last axes, and of one cell along
    those that are `single`.

    >>> rectangle((3, 10, 4), (True, False, False), 20)
    (1, 5, 4)
    """
    chunk = []
    for size, alone in zip(reversed(shape), reversed(single)):
        step = 1 if alone else max(1, min(size, cells))
        chunk.append(step)
        cells //= step
    return tuple(reversed(chunk))

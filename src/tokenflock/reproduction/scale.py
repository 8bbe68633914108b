"""How large a reproduction is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """`quick` (all of it in minutes on two cores) or `paper` (the published sizes)."""

    name: str = "quick"
    progress: Callable[[int, int], None] | None = None  # told (done, total), as by `ensemble`
    model: str | None = None  # a trained model (folder or name), for the items that need one

    def pick(self, quick: T, paper: T) -> T:
        """The value that belongs to this scale.

        >>> QUICK.pick(quick=64, paper=1024)
        64
        """
        return quick if self.name == "quick" else paper


QUICK = Scale("quick")
PAPER = Scale("paper")

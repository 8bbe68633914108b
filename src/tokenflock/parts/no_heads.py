"""No attention."""

from __future__ import annotations

from tokenflock.parts.heads import HeadMatrices, Heads
from tokenflock.shapes import Time


class NoHeads(Heads):
    """No attention: each token moves by itself.

    >>> NoHeads().number
    0
    """

    @property
    def number(self) -> int:
        return 0

    def matrices(self, t: Time, d: int) -> HeadMatrices:
        return HeadMatrices()

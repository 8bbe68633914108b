"""Everyone listens to everyone."""

from __future__ import annotations

from tokenflock.parts.mask import Mask
from tokenflock.shapes import Weights


class NoMask(Mask):
    """Everyone listens to everyone.

    >>> NoMask().exchangeable
    True
    """

    def seen(self, w: Weights) -> None:
        return None

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def exchangeable(self) -> bool:
        return True

"""Tokens that do not know their places."""

from __future__ import annotations

from tokenflock.parts.positions import Positions


class NoPositions(Positions):
    """Tokens do not know their places.

    >>> NoPositions().exchangeable
    True
    """

    @property
    def exchangeable(self) -> bool:
        return True

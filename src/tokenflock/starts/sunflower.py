"""An even grid on the two-sphere."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


class Sunflower(Start):
    """An even grid of n tokens on S^2: latitudes equally spaced in height, each turned by the
    golden angle.

    >>> Sunflower(n=100).shape
    (100, 3)
    """

    n: int = 200
    "number of tokens"

    def __check_init__(self) -> None:
        check_counts(self.n)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, 3

    @property
    def random(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        height = 1 - (2 * np.arange(self.n) + 1) / self.n
        angle = np.pi * (3 - np.sqrt(5)) * np.arange(self.n)
        radius = np.sqrt(1 - height**2)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=-1)

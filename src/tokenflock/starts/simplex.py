"""The regular simplex."""

from __future__ import annotations

from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts.equiangular import equiangular
from tokenflock.starts.start import Start, check_counts


class Simplex(Start):
    """The n corners of a regular simplex: all inner products are -1/(n-1), for every seed.

    >>> Simplex(n=4, d=3).shape
    (4, 3)
    """

    n: int = 4
    "number of tokens"
    d: int = 3
    "dimension, at least n - 1"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        require(self.n >= 2, "n", "2 or more for a simplex", self.n)
        require(
            self.d >= self.n - 1,
            "d",
            f"at least n - 1 = {self.n - 1}",
            self.d,
            f"write d={self.n - 1}",
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def random(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return equiangular(self.n, self.d, -1 / (self.n - 1))

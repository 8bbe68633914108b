"""What a law of random matrices is."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float, Key

from tokenflock.frozen import Frozen
from tokenflock.shapes import Array


class MatrixLaw(Frozen):
    """A law from which a (d, d) matrix is drawn.

    A random one has mean zero, and entries of variance 1 off the diagonal; one that is not random
    draws the same matrix for every key.
    """

    random: ClassVar[bool] = True  # another key draws another matrix
    symmetric: ClassVar[bool] = False  # B = B^T
    diagonal: ClassVar[float] = 1.0  # variance of the entries on the diagonal

    @abstractmethod
    def draw(self, key: Key[Array, ""], d: int) -> Float[Array, "d d"]:
        """One matrix."""

    def value_scale(self, d: int) -> float:
        """The number by which a matrix of this law is divided when it serves as V: sqrt(d) makes
        its spectrum of order one.
        """
        return d**0.5

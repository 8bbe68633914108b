"""What a law of starting points is."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.frozen import Frozen
from tokenflock.shapes import Array


class Start(Frozen):
    """A law from which n tokens in R^d are drawn, with their weights."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, d)."""

    @abstractmethod
    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        """Tokens, for one random key."""

    @property
    def on_sphere(self) -> bool:
        """Whether every token has length one."""
        return True

    @property
    def random(self) -> bool:
        """Whether another key gives other tokens."""
        return True

    @property
    def spans(self) -> bool:
        """Whether tokens can be drawn `in_span`, which is less to draw."""
        return False

    def in_span(self, key: Key[Array, ""]) -> Float[Array, "n n"]:
        """The tokens of `draw` in an orthonormal basis of a space that holds them: n coordinates
        each, the same Gram matrix.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> Start:
        """An instance: what the contract tests run on."""
        return cls()

    def weights(self) -> np.ndarray:
        """Weights that sum to one; equal unless the start says otherwise."""
        n, _ = self.shape
        return np.full(n, 1 / n)


def check_counts(n: int, d: int | None = None) -> None:
    """Refuse a number of tokens or a dimension below one."""
    require(n >= 1, "n", "a number of tokens, 1 or more", n, "write e.g. n=32")
    if d is not None:
        require(d >= 1, "d", "a dimension, 1 or more", d, "write e.g. d=2 for the circle")

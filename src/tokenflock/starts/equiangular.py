"""Tokens with one inner product between all pairs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts.start import Start, check_counts


def equiangular(n: int, d: int, rho: float) -> np.ndarray:
    """n unit vectors in R^d with <x_i, x_j> = rho for i != j, by the square root of their Gram
    matrix.
    """
    values, vectors = np.linalg.eigh((1 - rho) * np.eye(n) + rho)
    root = vectors * np.sqrt(np.maximum(values, 0))  # rows have the wanted Gram matrix
    x = np.zeros((n, d))
    # the largest eigenvalues first: the simplex needs only n - 1 of them
    x[:, : min(n, d)] = root[:, ::-1][:, : min(n, d)]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class Equiangular(Start):
    """n tokens with the same inner product rho between every two of them, for every seed.

    They obey one scalar equation (`theory.equiangular_cosine`). Needs d >= n, or d >= n - 1 at rho
    = -1/(n-1).

    >>> Equiangular(n=4, d=4, rho=0.25).shape
    (4, 4)
    """

    n: int = 32
    "number of tokens"
    d: int = 32
    "dimension, at least n"
    rho: float = 0.0
    "their common inner product, from -1/(n-1) to 1"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        low = -1 / (self.n - 1) if self.n > 1 else -1
        require(
            low - 1e-12 <= self.rho <= 1,
            "rho",
            f"between {low:.6g} and 1 for n = {self.n}",
            self.rho,
        )
        need = self.n - 1 if abs(self.rho - low) < 1e-12 else 1 if self.rho == 1 else self.n
        require(self.d >= need, "d", f"at least {need}", self.d, f"write d={need}")

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def random(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return equiangular(self.n, self.d, self.rho)

"""Heads with matrices of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenflock.dynamics._matrices import (
    Path,
    at,
    multiple_of_identity,
    positive_multiple,
    shape_of,
    width,
)
from tokenflock.errors import require
from tokenflock.parts.heads import HeadMatrices, Heads
from tokenflock.shapes import Array, Time


class GivenHeads(Heads):
    """Heads with the matrices that are given, constant or moving in time.

        u_i = sum_h O_h sum_j A^h_ij (V_h x_j + v_h) + o,
        S^h_ij = beta <Q_h x_i + q_h, K_h x_j + k_h>

    Q, K are (heads, m, d), V is (heads, m', d), O is (heads, d, m'). Each may be left out (the
    identity), a number (a multiple of it), an array, where (m, d) is one head, or a function of
    time such as `Switching`.

    >>> import numpy as np
    >>> GivenHeads(V=np.ones((4, 3, 3))).number
    4
    """

    Q: Array | float | Path | None = None
    "queries, (heads, m, d)"
    K: Array | float | Path | None = None
    "keys, (heads, m, d)"
    V: Array | float | Path | None = None
    "values, (heads, d, d), or (heads, m, d) with O"
    O: Array | float | Path | None = None
    "how what heads say is mixed, (heads, d, m)"
    q: Array | None = None
    "bias of queries, (heads, m)"
    k: Array | None = None
    "bias of keys, (heads, m)"
    v: Array | None = None
    "bias of values, (heads, m)"
    o: Array | None = None
    "bias of the mix, (d,)"
    average: bool = False
    "divide by the number of heads"
    relative: bool = False
    "say V (x_j - x_i) in place of V x_j"

    def __check_init__(self) -> None:
        shapes = {letter: self._shape(letter) for letter in "QKVO"}
        shapes = {letter: shape for letter, shape in shapes.items() if shape}
        counts = {letter: shape[0] for letter, shape in shapes.items()}
        require(
            len(set(counts.values())) <= 1, "heads", "arrays with one number of heads", f"{counts}"
        )
        d = {letter: shape[1 if letter == "O" else 2] for letter, shape in shapes.items()}
        require(len(set(d.values())) <= 1, "heads", "matrices on one R^d", f"widths {d}")
        inner = {"Q": self._inner("Q"), "K": self._inner("K")}
        same = len(set(inner.values())) == 1
        require(same, "heads: Q and K", "of one shape (m, d)", f"rows {inner}")
        inner = {"V": self._inner("V"), "O": self._inner("O")}
        same = len(set(inner.values())) == 1
        require(same, "heads: V and O", "(heads, m, d) and (heads, d, m)", f"inner sides {inner}")
        fits = not self.relative or self.v is None
        require(fits, "heads.v", "left out where heads say differences", "a bias")

    def _shape(self, letter: str) -> tuple[int, ...]:
        """(heads, rows, columns) of a matrix; empty for a multiple of the identity."""
        shape = shape_of(getattr(self, letter))
        if len(shape) == 2:
            shape = (1, *shape)
        require(
            len(shape) in (0, 3),
            f"heads.{letter}",
            "a matrix (m, d) or (heads, m, d)",
            f"shape {shape}",
        )
        return shape

    def _inner(self, letter: str) -> int | None:
        """The side of a matrix that is not d; None where that is d."""
        shape = self._shape(letter)
        inner = shape[2 if letter == "O" else 1] if shape else None
        return None if inner == self.dimension else inner

    @property
    def number(self) -> int:
        shapes = [self._shape(letter) for letter in "QKVO"]
        return next((shape[0] for shape in shapes if shape), 1)

    @property
    def plain(self) -> bool:
        matrices = (self.Q, self.K, self.V, self.O, self.q, self.k, self.v, self.o)
        return all(M is None for M in matrices) and not self.relative

    @property
    def says_differences(self) -> bool:
        return self.relative

    @property
    def share(self) -> float:
        return 1.0 / self.number if self.average else 1.0

    def matrices(self, t: Time, d: int) -> HeadMatrices:
        Q, K, V, O = (_stack(at(M, t)) for M in (self.Q, self.K, self.V, self.O))
        return HeadMatrices(Q, K, V, O, self.q, self.k, self.v, self.o)

    @property
    def isotropic(self) -> bool:
        plain = self.q is None and self.k is None and self.v is None and self.o is None
        return plain and multiple_of_identity(self.Q, self.K, self.V, self.O)

    @property
    def keeps_cones(self) -> bool:
        signs = positive_multiple(self.V) and positive_multiple(self.O)
        return signs and self.v is None and self.o is None and not self.relative

    @property
    def dimension(self) -> int | None:
        return width(self.Q, self.K, self.V) or (self._shape("O") or (0, None))[1]

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> GivenHeads:
        G = np.random.default_rng(seed).normal(size=(4, 2, d, d)) / np.sqrt(d)
        m = max(1, d - 1)
        return cls(Q=G[0, :, :m], K=G[1, :, :m], V=G[2, :, :m], O=G[3, :, :, :m])


def _stack(M: Any) -> Any:
    """One matrix as a stack of one."""
    return M[None] if M is not None and np.ndim(M) == 2 else M

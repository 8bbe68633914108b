"""The number of dimensions that tokens use."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.observables.observable import Observable, cosines, pairs
from tokenflock.shapes import Array, Tokens, Weights


class SpanDimension(Observable):
    """Dimension of the span of the tokens: how many eigenvalues of their Gram matrix exceed
    `threshold`.

    Source: option --plotdim of the code of arXiv 2312.10794, threshold 1e-3.
    """

    jump: ClassVar[float] = 1.0
    on_chip: ClassVar[bool] = False  # no eigenvalues there

    threshold: float = 1e-3
    "eigenvalues below it do not count"

    def __check_init__(self) -> None:
        if concrete(self.threshold):
            require(self.threshold > 0, "threshold", "positive", self.threshold)

    def resolution(self, epsilon: float) -> dict[str, float]:
        return {"threshold": 1024 * epsilon}  # eigenvalues of n tokens are off by about n epsilon

    def measure(self, x: Tokens, w: Weights) -> Array:
        G = jnp.where(pairs(w > 0), cosines(x), 0)
        return jnp.sum(jnp.linalg.eigvalsh(G) > self.threshold)

"""How many pairs have met."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.observables.observable import PairObservable
from tokenflock.shapes import Array, Rows, Scalar, Weights


class PairDensity(PairObservable):
    """Share of pairs i != j with <x_i, x_j> >= 1 - delta: the quantity p_delta of the phase
    diagrams.

    Source: section 6.3 and Figure 3 of arXiv 2312.10794, with delta = 1e-3. A single token counts
    as one cluster: 1.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(float(PairDensity().measure(x, jnp.full(3, 1 / 3))), 4)
    0.3333
    """

    jump: ClassVar[float] = 0.5

    delta: float = 1e-3
    "a pair has met if its cosine is at least 1 - delta"

    def __check_init__(self) -> None:
        if concrete(self.delta):
            require(
                0 < self.delta < 2, "delta", "between 0 and 2", self.delta, "write e.g. delta=1e-3"
            )

    def resolution(self, epsilon: float) -> dict[str, float]:
        return {"delta": 64 * epsilon}

    @property
    def rests_within(self) -> float | None:
        return self.delta

    def at_rest(self, value: Array) -> Array:
        return value > 1 - 1e-6

    def by_row(self, G: Rows, apart: Bool[Array, "m n"], w: Weights) -> Array:
        return jnp.sum(jnp.where((1 - self.delta <= G) & apart, w, 0), axis=1)

    def of_rows(self, rows: Array, w: Weights) -> Scalar:
        pairs = jnp.sum(w) ** 2 - jnp.sum(w * w)
        share = jnp.sum(w * rows) / pairs
        return jnp.where(jnp.sum(w > 0) > 1, jnp.minimum(share, 1.0), 1.0)

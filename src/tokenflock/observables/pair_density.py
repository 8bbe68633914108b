"""How many pairs have met."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.observables.observable import Observable, cosines, counted_pairs
from tokenflock.shapes import Scalar, Tokens, Weights


class PairDensity(Observable):
    """Share of pairs i != j with <x_i, x_j> >= 1 - delta: the quantity p_delta of the phase diagrams.

    Source: section 6.3 and Figure 3 of arXiv 2312.10794, with delta = 1e-3. A single token counts as one cluster: 1.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(float(PairDensity().measure(x, jnp.full(3, 1 / 3))), 4)
    0.3333
    """

    delta: float = 1e-3
    "how far from one the cosine may be"

    def __check_init__(self) -> None:
        if concrete(self.delta):
            require(0 < self.delta < 2, "delta", "between 0 and 2", self.delta, "write e.g. delta=1e-3")

    @property
    def rests_within(self) -> float | None:
        return self.delta

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        pairs = counted_pairs(w)
        met = jnp.sum(pairs * (cosines(x) >= 1 - self.delta))
        return jnp.where(jnp.sum(pairs) > 0, met, 1.0)

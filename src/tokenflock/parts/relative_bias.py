"""A table of biases, one for each distance."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.mask import places
from tokenflock.parts.positions import Positions
from tokenflock.shapes import Array, Weights


class RelativeBias(Positions):
    """A number for each distance i - j is added to the logits: table[i - j + L], the last ones for
    all that is farther than L.

    Source: arXiv 1910.10683 (its relative bias, one bucket for each distance).

    >>> RelativeBias([0.0, 1.0, 0.0]).heads is None
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("raffel2020t5",)

    table: Array
    "(2 L + 1,), or (heads, 2 L + 1)"

    def __check_init__(self) -> None:
        if concrete(self.table):
            shape = np.shape(self.table)
            fits = len(shape) in (1, 2) and shape[-1] % 2 == 1
            require(fits, "RelativeBias.table", "(2 L + 1,) or (heads, 2 L + 1)", f"shape {shape}")

    def bias(self, w: Weights) -> Float[Array, "..."]:
        place, far = places(w), np.shape(self.table)[-1] // 2
        distance = jnp.clip(place[:, None] - place, -far, far).astype(int) + far
        return jnp.asarray(self.table)[..., distance]

    @property
    def heads(self) -> int | None:
        return None if np.ndim(self.table) == 1 else np.shape(self.table)[0]

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> RelativeBias:
        return cls(np.random.default_rng(seed).normal(size=5))

"""A bias towards near tokens."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.parts.mask import places
from tokenflock.parts.positions import Positions
from tokenflock.shapes import Array, Weights


class Alibi(Positions):
    """A bias towards near tokens (ALiBi): -slope |i - j| is added to the logits.

    With `relative` the distance is divided by the number of tokens, so that the slope is that over
    the whole sequence. Source: arXiv 2108.12409.

    >>> Alibi(slope=[0.5, 0.25]).heads
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("press2021alibi",)

    slope: Array | float = 0.5
    "how much a place costs: one number, or one for each head"
    relative: bool = False
    "distances against the number of tokens"

    def bias(self, w: Weights) -> Float[Array, "..."]:
        place = places(w)
        distance = jnp.abs(place[:, None] - place)
        if self.relative:
            distance = distance / jnp.maximum(jnp.sum(w > 0), 1)
        return -jnp.asarray(self.slope, w.dtype)[..., None, None] * distance

    @property
    def heads(self) -> int | None:
        return None if np.ndim(self.slope) == 0 else np.shape(self.slope)[0]

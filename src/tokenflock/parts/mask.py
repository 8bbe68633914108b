"""Who listens to whom."""

from __future__ import annotations

from abc import abstractmethod

import jax.numpy as jnp
from jaxtyping import Bool, Float

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Weights


def places(w: Weights) -> Float[Array, " n"]:
    """The place of each token in the sequence, from 0; tokens of weight zero take none."""
    order = jnp.arange(w.shape[0])
    counts = (w > 0).astype(w.dtype)
    return jnp.sum(jnp.where(order[:, None] >= order, counts, 0), axis=-1) - 1


class Mask(Part):
    """Who listens to whom."""

    @abstractmethod
    def seen(self, w: Weights) -> Bool[Array, "n n"] | None:
        """Whether token i (row) sees token j; None where all see all."""

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether j sees i wherever i sees j, and all see themselves."""
        return False

    @property
    def exchangeable(self) -> bool:
        return False

"""Who listens to whom."""

from __future__ import annotations

from abc import abstractmethod

import jax.numpy as jnp
from jaxtyping import Bool, Float, Integer

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Weights

Integers = Integer[Array, "..."]


def places(w: Weights) -> Float[Array, " n"]:
    """The place of each token in the sequence, from 0; tokens of weight zero take none."""
    return jnp.cumsum((w > 0).astype(w.dtype)) - 1


class Mask(Part):
    """Who listens to whom."""

    @abstractmethod
    def seen(self, w: Weights) -> Bool[Array, "n n"] | None:
        """Whether token i (row) sees token j; None where all see all."""

    def sees(self, i: Integers, j: Integers) -> Bool[Array, "..."] | None:
        """Whether the token at place i sees that at j, by their places alone, where all tokens
        count; None where places do not tell.
        """
        return None

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

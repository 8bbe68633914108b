"""How logits become weights of attention."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Rows, Scalar, Weights


class Logits(NamedTuple):
    """What one head knows before it weighs."""

    S: Rows
    "beta <Q x_i, K x_j>"
    bias: Rows | None
    "of positions"
    seen: Bool[Array, "n n"] | None
    "who is seen"
    beta: Scalar
    "inverse temperature"

    @property
    def sum(self) -> Rows:
        """Logits and bias; -infinity for those who are not seen."""
        S = self.S if self.bias is None else self.S + self.bias
        return S if self.seen is None else jnp.where(self.seen, S, -jnp.inf)

    def masked(self, A: Rows) -> Rows:
        """A where it is seen, 0 elsewhere."""
        return A if self.seen is None else jnp.where(self.seen, A, 0)


class Weighing(Part):
    """How logits become weights of attention."""

    @abstractmethod
    def weigh(self, logits: Logits, w: Weights) -> Rows:
        """A_ij: how much token i listens to token j."""

    @property
    def smooth(self) -> bool:
        """Whether it is continuous."""
        return True

    def refusal(self, causal: bool, symmetric: bool) -> str | None:
        """Why it cannot be had with a mask that is (causal, symmetric), or None."""
        return None

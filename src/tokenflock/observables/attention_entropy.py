"""How widely tokens listen."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax.scipy.special import entr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.observables.attention_matrix import AttentionMatrix
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Tokens, Weights


class AttentionEntropy(Observable):
    """Entropy of each row of the attention matrix, in nats: 0 for one favourite, log n for equal
    attention.

    Rows that do not sum to one (USA) are normalised first.
    """

    dims: ClassVar[tuple[str, ...]] = ("particle",)
    unit: ClassVar[str] = "nats"

    dynamics: Dynamics | None = None
    "an attention dynamics; the one that ran unless given"
    t: float = 0.0
    "time at which matrices that move are taken"

    @property
    def isotropic(self) -> bool:
        return self.dynamics is None or self.dynamics.isotropic

    @property
    def needs_law(self) -> bool:
        return self.dynamics is None

    def bind(self, dynamics: Dynamics) -> AttentionEntropy:
        return self if self.dynamics is not None else AttentionEntropy(dynamics, self.t)

    def measure(self, x: Tokens, w: Weights) -> Weights:
        A = AttentionMatrix(self.dynamics, self.t).measure(x, w)
        total = jnp.sum(A, axis=-1, keepdims=True)
        return jnp.sum(entr(A / jnp.where(total > 0, total, 1)), axis=-1)

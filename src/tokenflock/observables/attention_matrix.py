"""The attention matrix."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.observables.observable import Observable, needed
from tokenflock.shapes import Rows, Tokens, Weights


class AttentionMatrix(Observable):
    """The attention matrix A_ij of the dynamics: how much token i listens to token j (at time `t`,
    if it depends on time).
    """

    dims: ClassVar[tuple[str, ...]] = ("particle", "other")

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

    def bind(self, dynamics: Dynamics) -> AttentionMatrix:
        return self if self.dynamics is not None else AttentionMatrix(dynamics, self.t)

    @property
    def name(self) -> str:
        return "attention"

    def measure(self, x: Tokens, w: Weights) -> Rows:
        law = needed(self.dynamics, self, "dynamics")
        return law.attention_matrix(jnp.asarray(self.t, x.dtype), law.space.project(x), w)

"""The rate at which a gradient flow changes its energy."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.dynamics.dynamics import Dynamics, GradientFlow
from tokenflock.errors import require
from tokenflock.observables.observable import Observable, needed
from tokenflock.shapes import Scalar, Tokens, Weights


class Dissipation(Observable):
    """d energy/dt along a gradient flow: +- sum_i metric_i |velocity_i|^2.

    For USA it is sum_i w_i |dx_i/dt|^2, for SA sum_i w_i Z_i |dx_i/dt|^2. Source: (3.6) and Lemma
    3.7 of arXiv 2312.10794.
    """

    dynamics: Dynamics | None = None
    "the gradient flow; the dynamics that ran unless given"

    @property
    def isotropic(self) -> bool:
        return self.dynamics is None or self.dynamics.isotropic

    @property
    def needs_law(self) -> bool:
        return self.dynamics is None

    def bind(self, dynamics: Dynamics) -> Dissipation:
        return self if self.dynamics is not None else Dissipation(dynamics)

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        flow = needed(self.dynamics, self, "dynamics")
        fits = isinstance(flow, GradientFlow)
        require(
            fits,
            "Dissipation.dynamics",
            "a gradient flow",
            type(flow).__name__,
            "e.g. SelfAttention",
        )
        v = flow.velocity(jnp.zeros((), x.dtype), x, w)
        rate = jnp.sum(flow.metric(x, w) * jnp.sum(v * v, axis=-1))
        return rate if flow.ascends else -rate

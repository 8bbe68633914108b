"""The energy that a gradient flow climbs, as the flow itself counts it."""

from __future__ import annotations

from tokenflock.dynamics.dynamics import Dynamics, GradientFlow
from tokenflock.errors import require
from tokenflock.observables.observable import Observable, needed
from tokenflock.shapes import Scalar, Tokens, Weights


class FlowEnergy(Observable):
    """The energy of the law that ran, in its own convention: E_beta of SA and USA, the transport
    cost of Sinkhorn, ...

    Under `Fast` it costs n and not n^2, as the velocity does. Source: (3.5) of arXiv 2312.10794 for
    SA and USA.

    >>> import jax.numpy as jnp
    >>> from tokenflock.dynamics import Fast, SelfAttention
    >>> law = Fast(SelfAttention(beta=1.0))
    >>> x, w = jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.full(2, 0.5)
    >>> round(float(FlowEnergy(law).measure(x, w)), 4)  # e/2
    1.3591
    """

    dynamics: Dynamics | None = None
    "the gradient flow; the dynamics that ran unless given"

    @property
    def isotropic(self) -> bool:
        return self.dynamics is None or self.dynamics.isotropic

    @property
    def needs_law(self) -> bool:
        return self.dynamics is None

    def bind(self, dynamics: Dynamics) -> FlowEnergy:
        return self if self.dynamics is not None else FlowEnergy(dynamics)

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        flow = needed(self.dynamics, self, "dynamics")
        fits = isinstance(flow, GradientFlow)
        require(
            fits,
            "FlowEnergy.dynamics",
            "a gradient flow",
            type(flow).__name__,
            "e.g. SelfAttention",
        )
        return flow.energy(x, w)

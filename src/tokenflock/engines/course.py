"""What an adaptive run follows, and until when."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.events.event import Event
from tokenflock.shapes import Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive


@dataclass(frozen=True)
class Course:
    """One system from its start, at the times to keep, of which the first is the start."""

    law: Dynamics
    solver: Adaptive
    x: Tokens
    w: Weights
    times: np.ndarray
    tolerances: tuple[float, float]  # relative, absolute
    until: Event | None = None

    @property
    def limits(self) -> jax.Array:
        """The tolerances as numbers of the run, so that other ones compile nothing anew."""
        return jnp.asarray(self.tolerances, self.x.dtype)

"""What an event is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.frozen import Frozen
from tokenflock.shapes import Array, Scalar, Time, Tokens, Weights


class Event(Frozen):
    """A reason to stop a run: the moment at which `margin` falls to zero."""

    isotropic: ClassVar[bool] = False  # blind to rotations of all tokens at once

    @abstractmethod
    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        """Positive before the event, zero or less after it."""

    def margins(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights
    ) -> Float[Array, " levels"]:
        """The margins of all moments that an ensemble keeps, the one that stops a run last."""
        return jnp.reshape(self.margin(dynamics, t, x, w), (1,))

    @property
    def levels(self) -> dict[str, Any]:
        """The axis of `margins`: its name and coordinates; empty where there is one moment only."""
        return {}

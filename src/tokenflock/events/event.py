"""What an event is."""

from __future__ import annotations

from abc import abstractmethod

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.frozen import Frozen
from tokenflock.shapes import Scalar, Time, Tokens, Weights


class Event(Frozen):
    """A reason to stop a run: the moment at which `margin` falls to zero."""

    @abstractmethod
    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        """Positive before the event, zero or less after it."""

"""Stop when all tokens agree."""

from __future__ import annotations

from typing import ClassVar

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.events.event import Event
from tokenflock.frozen import concrete
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.shapes import Scalar, Time, Tokens, Weights


class Consensus(Event):
    """Stop when every two tokens have cosine at least 1 - delta.

    >>> Consensus(delta=1e-3)
    Consensus(delta=0.001)
    """

    isotropic: ClassVar[bool] = True

    delta: float = 1e-3
    "every cosine must be at least 1 - delta"

    def __check_init__(self) -> None:
        if concrete(self.delta):
            require(
                0 < self.delta < 2, "delta", "between 0 and 2", self.delta, "write e.g. delta=1e-3"
            )

    def resolution(self, epsilon: float) -> dict[str, float]:
        return {"delta": 64 * epsilon}

    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        return 1 - MinimumCosine().measure(x, w) - self.delta

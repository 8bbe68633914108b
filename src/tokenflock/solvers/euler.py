"""Euler's method on the space."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


class Euler(FixedStep):
    """Euler's method for the flow: x <- project(x + h velocity). Order 1.

    >>> Euler(h=0.01).order
    1
    """

    order: ClassVar[int] = 1

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        return dynamics.space.retract(x, self.h * dynamics.velocity(t, x, w))

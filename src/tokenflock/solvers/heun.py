"""Heun's method on the space."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


class Heun(FixedStep):
    """Heun's method for the flow: the mean of the velocities at both ends of a step. Order 2.

    >>> Heun(h=0.1).order
    2
    """

    order: ClassVar[int] = 2

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        h = self.h
        k1 = dynamics.velocity(t, x, w)
        k2 = dynamics.velocity(t + h, x + h * k1, w)
        return dynamics.space.retract(x, h / 2 * (k1 + k2))

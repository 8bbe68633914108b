"""The classical Runge-Kutta method on the space."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


class RK4(FixedStep):
    """The classical Runge-Kutta method for the flow, the field evaluated anew at each of four
    stages. Order 4.

    >>> RK4(h=0.1).order
    4
    """

    order: ClassVar[int] = 4

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        h = self.h
        k1 = dynamics.velocity(t, x, w)
        k2 = dynamics.velocity(t + h / 2, x + h / 2 * k1, w)
        k3 = dynamics.velocity(t + h / 2, x + h / 2 * k2, w)
        k4 = dynamics.velocity(t + h, x + h * k3, w)
        return dynamics.space.retract(x, h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))

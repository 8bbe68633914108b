"""Euler's method with noise."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep, brownian


class EulerMaruyama(FixedStep):
    """Euler-Maruyama on the sphere: x <- project(x + h velocity + sqrt(h) diffusion P_x dW). Weak
    order 1.

    The projection supplies the curvature drift of Brownian motion on the sphere, so <x(t), x(0)>
    decays like e^{-(d-1) s^2 t / 2} for noise of strength s.

    >>> EulerMaruyama(h=0.01).order
    1
    """

    order: ClassVar[int] = 1
    takes_noise: ClassVar[bool] = True

    h: float = 0.01
    "step of time"

    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        drift = self.h * dynamics.velocity(t, x, w)
        return dynamics.space.retract(x, drift + brownian(dynamics, t, x, w, self.h, key))

"""Stop when nothing moves."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.events.event import Event
from tokenflock.frozen import concrete
from tokenflock.shapes import Scalar, Time, Tokens, Weights


class Stationary(Event):
    """Stop when no token moves faster than `speed`. A metastable state is slow but not stationary:
    choose it small.

    >>> Stationary(speed=1e-8)
    Stationary(speed=1e-08)
    """

    isotropic: ClassVar[bool] = True

    speed: float = 1e-8
    "largest |dx_i/dt| that counts as rest"

    def __check_init__(self) -> None:
        if concrete(self.speed):
            require(self.speed > 0, "speed", "positive", self.speed, "write e.g. speed=1e-8")

    def resolution(self, epsilon: float) -> dict[str, float]:
        # tokens at rest move by rounding: some epsilon times the force, taken to be at most 100
        return {"speed": 8192 * epsilon}

    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        v = dynamics.velocity(t, x, w)
        speeds = jnp.sqrt(jnp.sum(v * v, axis=-1))
        return jnp.max(jnp.where(w > 0, speeds, 0)) - self.speed

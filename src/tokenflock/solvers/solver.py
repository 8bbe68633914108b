"""What a solver is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.frozen import Frozen, concrete
from tokenflock.shapes import Array, Time, Tokens, Weights


class Solver(Frozen):
    """A way to advance tokens in time."""

    order: ClassVar[int]
    convention: ClassVar[str] = "flow"
    takes_noise: ClassVar[bool] = False


class FixedStep(Solver):
    """A solver that advances by a fixed step h."""

    h: float = 0.1
    "step of time"

    def __check_init__(self) -> None:
        if concrete(self.h):
            require(self.h > 0, "h", "a positive step", self.h, "write e.g. h=0.1")

    @abstractmethod
    def step(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]
    ) -> Tokens:
        """Tokens at time t + h."""

    def steps(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights, count: int) -> Tokens:
        """Tokens after so many steps of a law without noise."""
        key: Any = None

        def once(number: Array, x: Tokens) -> Tokens:
            return self.step(dynamics, t + number * self.h, x, w, key)

        return jax.lax.fori_loop(0, count, once, x)


def brownian(
    dynamics: Dynamics, t: Time, x: Tokens, w: Weights, h: Time, key: Key[Array, ""]
) -> Tokens:
    """The tangent Gaussian increment sqrt(h) times the noise of a unit of time."""
    return dynamics.space.tangent(x, jnp.sqrt(h) * dynamics.shake(t, x, w, key))

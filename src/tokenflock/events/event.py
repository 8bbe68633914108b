"""What an event is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.frozen import Frozen
from tokenflock.shapes import Array, Scalar, Time, Tokens, Weights


class Event(Frozen):
    """A reason to stop a run: the moment at which `margin` falls to zero.

    It sees tokens of positive weight only, and an order or a rotation of them only where it says
    so.
    """

    exchangeable: ClassVar[bool] = True  # blind to the order of tokens, if the law is
    isotropic: ClassVar[bool] = False  # blind to rotations of all tokens at once, if the law is

    @abstractmethod
    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        """Positive before the event, zero or less after it."""

    @classmethod
    def example(cls) -> Event:
        """An instance: what the contract tests run on."""
        return cls()

    @classmethod
    def happened(cls, n: int, d: int) -> np.ndarray:
        """Unit vectors (n, d) for which the example has happened: consensus unless said."""
        return np.tile(np.eye(d)[0], (n, 1))

    def margins(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights
    ) -> Float[Array, " levels"]:
        """The margins of all moments that an ensemble keeps, the one that stops a run last."""
        return jnp.reshape(self.margin(dynamics, t, x, w), (1,))

    def resolution(self, epsilon: float) -> dict[str, float]:
        """Return the least value of each threshold that numbers of machine epsilon `epsilon`
        resolve; see `Observable.resolution`.
        """
        return {}

    @property
    def levels(self) -> dict[str, Any]:
        """The axis of `margins`: its name and coordinates; empty where there is one moment only."""
        return {}

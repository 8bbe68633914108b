"""Coupled oscillators on the circle."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import UserError
from tokenflock.frozen import concrete
from tokenflock.shapes import Array, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Kuramoto(Dynamics):
    """Kuramoto oscillators: x_i = (cos theta_i, sin theta_i) with natural frequencies.

        dtheta_i/dt = omega_i + coupling sum_j w_j sin(theta_j - theta_i)

    With omega = 0 and coupling = 1 this is self-attention at beta = 0. Source: (7.2) of arXiv
    2312.10794.

    >>> Kuramoto(coupling=2.0).dimension
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("kuramoto1975", "geshkovski2025perspective")

    coupling: float = 1.0
    "strength K of the coupling"
    omega: Array | float = 0.0
    "natural frequencies: one number, or one for each token"

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        row, column = jnp.arange(x.shape[1])[:, None], jnp.arange(x.shape[1])
        quarter = ((row == 0) & (column == 1)).astype(x.dtype) - ((row == 1) & (column == 0))
        turned = x @ quarter  # (-x_2, x_1)
        omega = self.omega if jnp.ndim(self.omega) == 0 else jnp.asarray(self.omega)[:, None]
        return self.coupling * jnp.sum(w[:, None] * x, axis=0) + omega * turned

    @property
    def exchangeable(self) -> bool:
        return np.ndim(self.omega) == 0

    @property
    def isotropic(self) -> bool:
        return concrete(self.omega) and np.ndim(self.omega) == 0 and bool(self.omega == 0)

    @property
    def dimension(self) -> int | None:
        return 2

    @property
    def particles(self) -> int | None:
        return None if np.ndim(self.omega) == 0 else np.shape(self.omega)[0]

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads
        from tokenflock.parts.two_layers import TwoLayers

        if np.ndim(self.omega) > 0:
            raise UserError("Kuramoto is no Block where its tokens have frequencies of their own")
        still = Block(GivenHeads(V=self.coupling), beta=0.0)
        if self.isotropic:
            return still
        quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
        turn = TwoLayers(W=quarter * self.omega, A=np.eye(2), activation=Activation.IDENTITY)
        return dataclasses.replace(still, feed_forward=turn)

    @classmethod
    def example(cls, n: int = 6, d: int = 2, seed: int = 0) -> Kuramoto:
        return cls(coupling=1.5, omega=np.random.default_rng(seed).normal(size=n))

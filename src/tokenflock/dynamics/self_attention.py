"""SA: the law of the papers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp

from tokenflock.dynamics._kernels import interaction_energy
from tokenflock.dynamics.dynamics import AttentionLaw, GradientFlow, Interaction, Products
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Points, Rows, Scalar, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class SelfAttention(AttentionLaw, GradientFlow):
    """Self-attention on the sphere (SA), Q = K = I and V = I or -I.

        dx_i/dt = P_{x_i} ( Z_i^{-1} sum_j w_j e^{beta <x_i, x_j>} x_j ),
        Z_i = sum_k w_k e^{beta <x_i, x_k>}

    It climbs E_beta = (1/2 beta) sum_ij w_i w_j e^{beta <x_i, x_j>} in the metric sum_i w_i Z_i
    <a_i, b_i>. Source: (SA) and (2.6) of arXiv 2312.10794. With `repulsive`, V = -I and every sign
    is turned.

    >>> import tokenflock as flock
    >>> from tokenflock.starts import Uniform
    >>> run = flock.simulate(SelfAttention(beta=1.0), Uniform(n=8, d=3), t=20, seed=0)
    >>> bool(run.x.isel(time=-1).std("particle").max() < 1e-3)
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)

    beta: float = 1.0
    "inverse temperature"
    repulsive: bool = False
    "V = -I instead of V = I"

    def __check_init__(self) -> None:
        if concrete(self.beta):
            require(
                math.isfinite(self.beta),
                "beta",
                "a finite number",
                self.beta,
                "write e.g. beta=4.0",
            )

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return self.beta * (q @ x.T)

    def products(self, t: Time, q: Points, x: Tokens) -> Products:
        return Products(q, x, self.beta)

    def values(self, t: Time, x: Tokens) -> Tokens:
        return -x if self.repulsive else x

    @property
    def interaction(self) -> Interaction:
        return Interaction(self.beta)

    def energy(self, x: Tokens, w: Weights) -> Scalar:
        return interaction_energy(x @ x.T, w, self.beta)

    def metric(self, x: Tokens, w: Weights) -> Weights:
        return w * jnp.sum(w * jnp.exp(self.beta * (x @ x.T)), axis=-1)

    @property
    def ascends(self) -> bool:
        return not self.repulsive

    @property
    def keeps_cones(self) -> bool:
        return not self.repulsive

    @property
    def isotropic(self) -> bool:
        return True

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.given_heads import GivenHeads

        V = -1.0 if self.repulsive else None
        return Block(heads=GivenHeads(V=V), beta=self.beta)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> SelfAttention:
        return cls(beta=2.0)

"""USA: attention without the partition function, a Wasserstein gradient flow."""

from __future__ import annotations

import enum
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


class Clock(enum.Enum):
    """Which unit of time USA runs in.

    The orbits are the same; PEAK time is e^beta times PAPER time.
    """

    PAPER = "paper"  # weights e^{beta <x, y>}: arXiv 2312.10794
    PEAK = "peak"  # weights e^{beta (<x, y> - 1)}, at most one: arXiv 2410.06833


class Unnormalised(AttentionLaw, GradientFlow):
    """Unnormalised self-attention on the sphere (USA), in either of its two clocks.

        dx_i/dt = P_{x_i} ( sum_j w_j e^{beta <x_i, x_j>} x_j )                (clock PAPER)
        dx_i/dt = P_{x_i} ( sum_j w_j e^{beta (<x_i, x_j> - 1)} x_j )          (clock PEAK)

    It is the gradient flow of E_beta = (1/2 beta) sum_ij w_i w_j e^{beta <x_i, x_j>} for the metric
    sum_i w_i <a_i, b_i> (clock PAPER), that is for the Wasserstein distance. Source: (USA) of arXiv
    2312.10794; PEAK: arXiv 2410.06833. Beyond beta = 700 only PEAK is finite.

    >>> Unnormalised(beta=2.0, clock=Clock.PEAK).clock
    <Clock.PEAK: 'peak'>
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective", "geshkovski2024metastability")

    beta: float = 1.0
    "inverse temperature"
    clock: Clock = Clock.PAPER
    "unit of time: 'paper' (weights e^(beta c)) or 'peak' (weights e^(beta (c-1)))"
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
            fits = self.clock is Clock.PEAK or self.beta <= 700
            require(
                fits,
                "beta",
                "at most 700 in the paper's clock (e^beta overflows)",
                self.beta,
                "use clock 'peak'",
            )

    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        return self.beta * (q @ x.T - self.shift)

    def products(self, t: Time, q: Points, x: Tokens) -> Products:
        return Products(q, x, self.beta, self.beta * self.shift)

    def values(self, t: Time, x: Tokens) -> Tokens:
        return -x if self.repulsive else x

    @property
    def divides(self) -> bool:
        return False

    @property
    def bounded(self) -> bool:
        return self.clock is Clock.PEAK

    @property
    def shift(self) -> float:
        """What the clock takes off each cosine: 1 at the peak, 0 as in the paper."""
        return 1.0 if self.clock is Clock.PEAK else 0.0

    @property
    def interaction(self) -> Interaction:
        return Interaction(self.beta)

    def energy(self, x: Tokens, w: Weights) -> Scalar:
        return interaction_energy(x @ x.T, w, self.beta)

    def metric(self, x: Tokens, w: Weights) -> Weights:
        return w * jnp.exp(self.beta * self.shift)

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
        from tokenflock.parts.no_weighing import NoWeighing

        V = -1.0 if self.repulsive else None
        return Block(GivenHeads(V=V), attention=NoWeighing(self.clock), beta=self.beta)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Unnormalised:
        return cls(beta=1.5)

"""Brownian noise on the tokens of any law."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.dynamics.dynamics import Around, Dynamics
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Array, Scalar, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Noisy(Around):
    """Any law with independent Brownian noise on each token (McKean-Vlasov).

        dX_i = velocity_i dt + sqrt(2 / kappa) dW_i,   W_i Brownian motions on the sphere

    Source: arXiv 2512.01868 (section on noise), arXiv 2412.14813. On the circle, uniform tokens
    lose stability under USA at kappa = beta / I_1(beta).

    >>> Noisy(Unnormalised(beta=1.0), kappa=10.0).noisy
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("rigollet2025meanfield", "shalova2024noisy")

    base: Dynamics = Unnormalised()
    "the law without noise"
    kappa: float = 10.0
    "inverse strength of the noise"

    def __check_init__(self) -> None:
        once = not self.base.noisy
        require(once, "Noisy.base", "a law without noise", repr(self.base), "give the noise once")
        if concrete(self.kappa):
            require(
                self.kappa > 0,
                "kappa",
                "positive",
                self.kappa,
                "for no noise use the base dynamics itself",
            )

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.base.force(t, x, w)

    def velocity(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.base.velocity(t, x, w)

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        return self.base.sublayers

    def diffusion(self, t: Time, x: Tokens, w: Weights) -> Scalar:
        return jnp.sqrt(2 / jnp.asarray(self.kappa, x.dtype))

    def shake(self, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]) -> Tokens:
        return Dynamics.shake(self, t, x, w, key)

    @property
    def noisy(self) -> bool:
        return True

    def as_block(self) -> Block:
        from tokenflock.parts.independent_noise import IndependentNoise

        return dataclasses.replace(self.base.as_block(), noise=IndependentNoise(self.kappa))

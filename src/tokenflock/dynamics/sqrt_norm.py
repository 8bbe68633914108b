"""Square-root scaling: later layers count less."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.dynamics._schemes import Scheme
from tokenflock.shapes import Points, Time, Tokens, Weights


class SqrtNorm(Scheme):
    """Square-root scaling (CoD, LN-scaling): Post-LN with the branch divided by sqrt(t + 1).

        dtheta_j/dt = P_{theta_j} A_j / sqrt(t + 1)

    Source: arXiv 2510.22026. Clusters form at rate 1 - rho ~ e^{-4 sqrt t}.

    >>> SqrtNorm(beta=5.0).space
    Sphere()
    """

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return super().field(t, q, x, w) / jnp.sqrt(t + 1)

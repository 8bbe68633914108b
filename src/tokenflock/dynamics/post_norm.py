"""Post-LN: normalise after every layer."""

from __future__ import annotations

from tokenflock.dynamics._schemes import Scheme


class PostNorm(Scheme):
    """Post-LN, the original Transformer: tokens are normalised after every layer and r = 1.

        dtheta_j/dt = P_{theta_j} A_j

    Source: arXiv 2510.22026. Clusters form at rate 1 - rho ~ e^{-2t}.

    >>> PostNorm(beta=5.0).space
    Sphere()
    """

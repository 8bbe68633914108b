"""The first step of the BBGKY hierarchy: how pair correlations start from uniform tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, finite, whole
from .rates import growth_rate
from .thresholds import interaction_curvature


def initial_correlation_speed(
    n: ArrayLike = 32, beta: ArrayLike = 1.0, d: ArrayLike = 2
) -> Numbers:
    """Speed at time 0 of the mean cosine of two tokens that start uniform and independent (USA).

        d/dt E<x_1, x_2> = (2/n) (d-1) lambda_1(beta, d) / beta;
        on the circle 2 I_1(beta) / (beta n)

    Only the direct pull of the pair counts: the other n - 2 tokens cancel in the mean.

    Source: arXiv 2312.10794, Section 8 (exact initial slope of its equation for psi).

    >>> from tokenflock.theory import initial_correlation_speed
    >>> print(f"{initial_correlation_speed(4, 1.5):.10f}")
    0.3272221429
    """
    n = whole("n", n, 2, "32")
    return (2 * growth_rate(1, beta, d, "USA") / n)[()]


def initial_pair_density_speed(
    x: ArrayLike = 0.0, n: ArrayLike = 32, beta: ArrayLike = 1.0
) -> Numbers:
    """Speed at time 0 of the law psi of the angle between two tokens on the circle (USA, uniform
    start).

        d psi/dt (0, x) = g_beta(x) / (pi n),   psi(0, x) = 1/(2 pi),
        g_beta(x) = (cos x - beta sin^2 x) e^(beta cos x)

    Letters: x = theta_2 - theta_1.

    Source: arXiv 2312.10794, Section 8.

    >>> from tokenflock.theory import initial_pair_density_speed
    >>> print(f"{initial_pair_density_speed(0.0, 32, 1.0):.8f}")
    0.02703925
    """
    x, n = finite("x", x), whole("n", n, 2, "32")
    return (interaction_curvature(x, beta, 2) / (np.pi * n))[()]

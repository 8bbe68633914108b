"""Tokens that start equiangular stay equiangular: one ODE, solved in closed form.

With u = 1 - gamma, v = gamma + 1/(n-1) and y = log(v/u) the ODEs of Theorem 6.8 become

    SA:  dy/dt = 2n / (n - 1 + e^(beta u)),      USA:  dy/dt = 2 e^(beta gamma),

so y is the natural clock (y = 2t at beta = 0), and t(y) is a sum of two exponential integrals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, finite, whole
from ._check import cosine as held
from ._clock import clock, clock_at, cosine, elapsed, gap
from ._family import speed


def equiangular_speed(
    gamma: ArrayLike = 0.0, n: ArrayLike = 32, beta: ArrayLike = 1.0, unnormalised: bool = False
) -> Numbers:
    """Speed of the common cosine of n equiangular tokens.

        SA:
        dgamma/dt = 2 e^(beta gamma) (1-gamma) ((n-1) gamma + 1) / (e^beta + (n-1) e^(beta gamma))
        USA:  dgamma/dt = (2/n) e^(beta gamma) (1-gamma) ((n-1) gamma + 1)

    Letters: gamma = <x_i, x_j> for all i != j, from -1/(n-1) to 1, n tokens, beta inverse
    temperature.

    Source: arXiv 2312.10794, Theorem 6.8, (6.9) and (6.10).

    >>> from tokenflock.theory import equiangular_speed
    >>> print(f"{equiangular_speed(0.0, 32, 1.0):.10f}")
    0.0593150034
    """
    n, beta = whole("n", n, 2, "32"), finite("beta", beta)
    gamma = held("gamma", gamma, n)
    with np.errstate(over="ignore"):
        if unnormalised:
            shape = 2 * (1 - gamma) * ((n - 1) * gamma + 1)
            return (shape * np.exp(beta * gamma) / n)[()]
        return speed(gamma, n, beta)[()]


def equiangular_time(
    gamma: ArrayLike = 0.9,
    n: ArrayLike = 32,
    beta: ArrayLike = 1.0,
    gamma0: ArrayLike = 0.0,
    unnormalised: bool = False,
) -> Numbers:
    """Time at which n equiangular tokens reach the cosine gamma, in closed form.

        SA:   t = [ (n-1)/(2n) log(v/u) + (1/(2n)) (-Ei(beta u) - e^(beta n/(n-1)) E1(beta v)) ]
        USA:  t = [ (1/2) (-e^(-beta) Ei(beta u) - e^(beta/(n-1)) E1(beta v)) ]

    each between gamma0 and gamma. Letters: u = 1 - gamma, v = gamma + 1/(n-1); Ei, E1 exponential
    integrals. Any sign of beta; inf where the time exceeds 1e308, and at gamma = 1.

    Source: integral of arXiv 2312.10794, (6.9) and (6.10).

    >>> from tokenflock.theory import equiangular_time
    >>> print(f"{equiangular_time(0.999, 32, 4.0):.8f}")
    6.95350185
    """
    n, beta = whole("n", n, 2, "32"), finite("beta", beta)
    y0, y1 = clock("gamma0", gamma0, n), clock("gamma", gamma, n, ends=True)
    return elapsed(y0, y1, n, beta, unnormalised)


def equiangular_cosine(
    t: ArrayLike = 1.0,
    n: ArrayLike = 32,
    beta: ArrayLike = 1.0,
    gamma0: ArrayLike = 0.0,
    unnormalised: bool = False,
) -> Numbers:
    """Common cosine gamma_beta(t) of n equiangular tokens at time t.

        gamma_beta(t): the solution of (6.9) (SA) or (6.10) (USA) with gamma(0) = gamma0

    the inverse of `equiangular_time`; at beta = 0, gamma0 = 0 it is (e^(2t) - 1)/(e^(2t) + n - 1).
    By Theorem 6.9 the cosines of random tokens follow this curve when d is large.

    Source: arXiv 2312.10794, Theorems 6.8 and 6.9.

    >>> from tokenflock.theory import equiangular_cosine
    >>> print(f"{equiangular_cosine(2.0, 32, 1.0):.12f}")
    0.589772822900
    """
    t, n, beta = finite("t", t), whole("n", n, 2, "32"), finite("beta", beta)
    return cosine(clock_at(t, clock("gamma0", gamma0, n), n, beta, unnormalised), n)[()]


def equiangular_gap(
    t: ArrayLike = 1.0,
    n: ArrayLike = 32,
    beta: ArrayLike = 1.0,
    gamma0: ArrayLike = 0.0,
    unnormalised: bool = False,
) -> Numbers:
    """Distance to consensus 1 - gamma_beta(t) of n equiangular tokens, to full relative accuracy.

        1 - gamma_beta(t), which decays like e^(-2t) (SA) and e^(-2 e^beta t) (USA)

    Source: arXiv 2312.10794, Theorem 6.8.

    >>> from tokenflock.theory import equiangular_gap
    >>> print(f"{equiangular_gap(50.0, 32, 0.0):.6e}")
    1.190424e-42
    """
    t, n, beta = finite("t", t), whole("n", n, 2, "32"), finite("beta", beta)
    return gap(clock_at(t, clock("gamma0", gamma0, n), n, beta, unnormalised), n)[()]

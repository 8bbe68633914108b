"""Attention with a symmetric matrix D in place of I: traps, maximisers and minimisers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import Numbers, above, between, finite, whole, within
from ._roots import bracketed_root
from ._special import log_order_ratio


class Window(NamedTuple):
    """The ends of an open interval."""

    low: Numbers
    high: Numbers


def trap_window(eigenvalue: ArrayLike = 1.0) -> Window:
    """Interval of d1 in which D = diag(d1, eigenvalue) has no trap of two equal opposite clusters.

        low = c tanh(c),   high tanh(high) = c,   c = eigenvalue

    Two equal clusters at +-e_1 are stable iff lambda_2/lambda_1 < tanh(lambda_1): outside the
    window random tokens may end in two clusters instead of one.

    Source: derived for the energy of arXiv 2501.03096 (its experiment with D = diag(d, 1)).

    >>> from tokenflock.theory import trap_window
    >>> print("{:.10f} {:.10f}".format(*trap_window(1.0)))
    0.7615941560 1.1996786403
    """
    c = above("eigenvalue", finite("eigenvalue", eigenvalue), 0, "1.0")
    # x/(1 + x) <= tanh(x) <= x
    above_it = c / 2 + np.sqrt(c) * (np.sqrt(c + 4) / 2)
    high = bracketed_root(lambda x: x * np.tanh(x) - c, np.sqrt(c), above_it)
    return Window((c * np.tanh(c))[()], high[()])


def two_cluster_growth(
    lambda1: ArrayLike = 1.0, lambda2: ArrayLike = 0.5, p: ArrayLike = 0.5
) -> Numbers:
    """Largest eigenvalue of the Hessian at two opposite clusters of masses p and 1 - p on the top
    axis of D.

        H = [[-2p(p a - (1-p) b), -2p(1-p)c], [-2p(1-p)c, -2(1-p)((1-p) a - p b)]],
        a = (lambda1 - lambda2) e^lambda1,   b = lambda1 e^(-lambda1),   c = lambda2 e^(-lambda1)

    negative: the pair is a trap for the ascent of int int e^(x.Dy) dmu dmu. Infinite where
    e^lambda1 is beyond the numbers.

    Source: derived for the energy of arXiv 2501.03096.

    >>> from tokenflock.theory import two_cluster_growth
    >>> print(f"{two_cluster_growth(1.0, 0.5):.6f} {two_cluster_growth(1.0, 0.9):.6f}")
    -0.403661 0.213571
    """
    lambda1, lambda2 = finite("lambda1", lambda1), finite("lambda2", lambda2)
    p = between("p", p, 0, 1, "0.5")
    top = np.abs(lambda1)  # e^top is taken out: it may overflow
    a = (lambda1 - lambda2) * np.exp(lambda1 - top)
    b, c = lambda1 * np.exp(-lambda1 - top), lambda2 * np.exp(-lambda1 - top)
    first, second = -2 * p * (p * a - (1 - p) * b), -2 * (1 - p) * ((1 - p) * a - p * b)
    growth = (first + second) / 2 + np.hypot((first - second) / 2, 2 * p * (1 - p) * c)
    with np.errstate(over="ignore", divide="ignore"):
        return (np.sign(growth) * np.exp(top + np.log(np.abs(growth))))[()]


def antipodal_energy(eigenvalue: ArrayLike = 1.0, p: ArrayLike = 0.5) -> Numbers:
    """Energy of two opposite clusters of masses p and 1 - p on an eigenvector of D.

        E = (p^2 + q^2) e^c + 2 p q e^(-c),   q = 1 - p, c = eigenvalue;   p = 1/2: cosh(c)

    the maximum over all measures when D <= 0, c its lowest eigenvalue and p = 1/2.

    Source: derived for the energy int int e^(x.Dy) dmu dmu of arXiv 2501.03096.

    >>> from tokenflock.theory import antipodal_energy
    >>> print(f"{antipodal_energy(-1.0):.10f}")
    1.5430806348
    """
    c, p = finite("eigenvalue", eigenvalue), within("p", p, 0, 1, "0.5")
    q = 1 - p
    return ((p * p + q * q) * np.exp(c) + 2 * p * q * np.exp(-c))[()]


def maximiser_crossing(c: ArrayLike = 1.0) -> Numbers:
    """The d2 at which one cluster overtakes two opposite ones as the maximiser for D = diag(-c,
    d2).

        e^(d2) = cosh(c)   <=>   d2 = log cosh(c)

    Source: derived for the energy of arXiv 2501.03096 (its experiment with indefinite D).

    >>> from tokenflock.theory import maximiser_crossing
    >>> print(f"{maximiser_crossing(1.0):.10f}")
    0.4337808305
    """
    c = np.abs(finite("c", c))
    return (c + np.log1p(np.exp(-2 * c)) - np.log(2))[()]


def four_particle_share(d1: ArrayLike = 1.0, d2: ArrayLike = 2.0) -> Numbers:
    """Share a^2 of the first axis for four repelling particles (+-a, +-b) under D = diag(d1, d2).

        tanh(d1 a^2) / tanh(d2 b^2) = d2 / d1,   a^2 + b^2 = 1,   energy cosh(d1 a^2) cosh(d2 b^2)

    the minimum of the energy over a^2 in [0, 1] where it lies inside; d1, d2 > 0.

    Source: arXiv 2501.03096 (four-particle system).

    >>> from tokenflock.theory import four_particle_share
    >>> print(f"{four_particle_share(1.0, 2.0):.10f}")
    0.8237685764
    """
    d1, d2 = np.broadcast_arrays(
        above("d1", finite("d1", d1), 0, "1.0"), above("d2", finite("d2", d2), 0, "2.0")
    )

    def slope(share: NDArray) -> NDArray:
        return d1 * np.tanh(d1 * share) - d2 * np.tanh(d2 * (1 - share))

    return bracketed_root(slope, np.zeros(d1.shape), np.ones(d1.shape))[()]


def minimiser_tilt(d: ArrayLike = 2, beta: ArrayLike = 1.0) -> Numbers:
    """First-order coefficient alpha of the minimising density near the isotropic matrix D = I + eps
    M.

        density ~ 1 + eps alpha (x.Mx - tr(M)/d),
        alpha = -lambda_1/lambda_2 = -I_(d/2)(beta) / I_(d/2+1)(beta)

    Letters: lambda_k the eigenvalues of the kernel. The published code computes alpha with
    sin^(d-1) where the sphere has sin^(d-2), and is off by 59 % at d = 2.

    Source: derived for the energy of arXiv 2501.03096 (its near-isotropic expansion).

    >>> from tokenflock.theory import minimiser_tilt
    >>> print(minimiser_tilt([2, 3]).round(8))
    [-4.16330612 -5.14064683]
    """
    d, beta = whole("d", d, 2, "2"), above("beta", finite("beta", beta), 0, "1.0")
    return (-np.exp(-log_order_ratio(1, beta, d + 2)))[()]

"""Random tokens: when do they share a hemisphere, and how many of them lead?"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc, betaincc, exp1

from ._check import Numbers, above, at_least, whole, within


def hemisphere_probability(n: ArrayLike = 32, d: ArrayLike = 16) -> Numbers:
    """Probability that n independent uniform tokens lie in one open hemisphere (Wendel).

        P = 2^(-(n-1)) sum_(k<d) C(n-1, k) = I_(1/2)(n-d, d)

    Letters: n tokens (at most 1e9), d dimension, I the regularised incomplete beta function. Then
    Lemma 6.4 gives consensus at an exponential rate. 1/2 at n = 2d, 1 for n <= d.

    Source: arXiv 2312.10794, Theorem 6.7 (Wendel 1962).

    >>> from tokenflock.theory import hemisphere_probability
    >>> print(hemisphere_probability([3, 4, 10], [2, 3, 3]))
    [0.75       0.875      0.08984375]
    """
    n, d = whole("n", n, 1, "32", 1e9), whole("d", d, 1, "16")
    return np.where(d >= n, 1.0, betainc(np.maximum(n - d, 1), d, 0.5))[()]


def cap_fraction(delta: ArrayLike = 0.5, d: ArrayLike = 2) -> Numbers:
    """Fraction of the sphere within angle delta of a point.

        sigma(cap) = (1/2) I_(sin^2 delta)((d-1)/2, 1/2) for delta <= pi/2
        circle: delta/pi,   S^2: (1 - cos delta)/2

    Letters: delta the angle of the cap, I the regularised incomplete beta function.

    Source: elementary; used with arXiv 2411.04990.

    >>> from tokenflock.theory import cap_fraction
    >>> print(f"{cap_fraction(0.5, 2):.6f}")
    0.159155
    """
    delta, d = within("delta", delta, 0, np.pi, "0.5"), whole("d", d, 2, "2")
    a, near, far = (d - 1) / 2, np.sin(delta) ** 2, np.cos(delta) ** 2
    # from the smaller of the two, which has all its digits
    half = np.where(near < far, betainc(a, 0.5, near), betaincc(0.5, a, far)) / 2
    return np.where(delta <= np.pi / 2, half, 1 - half)[()]


def strong_centres(delta: ArrayLike = 0.5, d: ArrayLike = 2, n: ArrayLike = np.inf) -> Numbers:
    """Expected number of strong Renyi centres: tokens farther than delta from all earlier ones.

        E = (1 - (1 - sigma)^n) / sigma,   sigma = cap_fraction(delta, d)

    among n uniform tokens; n = inf: 1/sigma (on the circle pi/delta). With causal attention they
    hardly move, and the other tokens gather around them. Letters: delta the angle. Where sigma is
    below the smallest number (large d) every token is a centre: E = n.

    Source: arXiv 2411.04990, with delta = c beta^(-1/2).

    >>> from tokenflock.theory import strong_centres
    >>> print(f"{strong_centres(0.5, 2):.4f} {strong_centres(0.5, 2, n=10):.4f}")
    6.2832 5.1731
    """
    above("delta", delta, 0, "0.5")
    sigma, n = cap_fraction(delta, d), at_least("n", n, 1, "200")
    sigma, n = np.broadcast_arrays(sigma, n)
    empty = sigma < 1e-300  # caps of no measure: every token is a centre
    safe = np.where(empty, 0.5, sigma)
    with np.errstate(divide="ignore"):
        return np.where(empty, n, -np.expm1(n * np.log1p(-safe)) / safe)[()]


def renyi_centres(delta: ArrayLike = 0.5) -> Numbers:
    """Expected number of Renyi centres on the circle: farther than delta from all earlier centres.

        E = m 2 pi / delta,   m = int_0^inf exp(-2 int_0^x (1 - e^(-y))/y dy) dx = 0.7475979202...

    in the limit of many tokens and small delta (the corrections vanish faster than exponentially).
    Letters: delta the angle, m Renyi's parking constant.

    Source: arXiv 2411.04990; Renyi 1958.

    >>> from tokenflock.theory import renyi_centres
    >>> print(f"{renyi_centres(0.5):.4f}")
    9.3946
    """
    return (
        _parking_constant()
        * 2
        * np.pi
        / within("delta", above("delta", delta, 0, "0.5"), 0, np.pi, "0.5")
    )[()]


@cache
def _parking_constant() -> float:
    def survival(x: float) -> float:
        return float(np.exp(-2 * (exp1(x) + np.log(x) + np.euler_gamma))) if x > 0 else 1.0

    # beyond x = 30 the inner integral is log x + euler_gamma to double precision
    return (
        quad(survival, 0, 30, epsabs=1e-14, epsrel=1e-14, limit=200)[0]
        + float(np.exp(-2 * np.euler_gamma)) / 30
    )

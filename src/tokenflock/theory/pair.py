"""Two tokens, or two clusters: when do they meet?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from ._check import Numbers, at_least, between, finite, nonzero
from ._clock import clock, elapsed
from .equiangular import equiangular_cosine, equiangular_speed


def pair_speed(
    gamma: ArrayLike = 0.0, beta: ArrayLike = 1.0, unnormalised: bool = False
) -> Numbers:
    """Speed of the cosine of two tokens.

        SA:   dgamma/dt = 2 e^(beta gamma) (1 - gamma^2) / (e^beta + e^(beta gamma))
        USA:  dgamma/dt = e^(beta gamma) (1 - gamma^2)

    Source: arXiv 2312.10794, (6.9) and (6.10) with n = 2; the same orbits at two speeds (Section
    3.4).

    >>> from tokenflock.theory import pair_speed
    >>> print(pair_speed(0.0, beta=0.0), pair_speed(0.0, beta=1.0, unnormalised=True))
    1.0 1.0
    """
    return equiangular_speed(gamma, 2, beta, unnormalised)


def pair_time(
    gamma0: ArrayLike = 0.0,
    gamma1: ArrayLike = 0.5,
    beta: ArrayLike = 1.0,
    unnormalised: bool = False,
) -> Numbers:
    """Time that two tokens need to bring their cosine from gamma0 to gamma1, in closed form.

        SA:
        t = [ (1/2) artanh(gamma) + (1/4) (-Ei(beta(1-gamma)) - e^(2 beta) E1(beta(1+gamma))) ]
        USA:  t = [ (1/2) (-e^(-beta) Ei(beta(1-gamma)) - e^beta E1(beta(1+gamma))) ]

    each between gamma0 and gamma1; at beta = 0 both are artanh(gamma1) - artanh(gamma0).

    Source: integral of arXiv 2312.10794, (6.9) and (6.10) with n = 2.

    >>> from tokenflock.theory import pair_time
    >>> print(f"{pair_time(0.0, 0.5, beta=1.0):.12f}")
    0.855375023305
    """
    beta, two = finite("beta", beta), np.asarray(2.0)
    y0, y1 = clock("gamma0", gamma0, two), clock("gamma1", gamma1, two, ends=True)
    return elapsed(y0, y1, two, beta, unnormalised)


def pair_cosine(
    t: ArrayLike = 1.0, gamma0: ArrayLike = 0.0, beta: ArrayLike = 1.0, unnormalised: bool = False
) -> Numbers:
    """Cosine of two tokens at time t, the inverse of `pair_time`.

        beta = 0:  gamma(t) = tanh(t + artanh(gamma0))

    Source: arXiv 2312.10794, (6.9) and (6.10) with n = 2.

    >>> from tokenflock.theory import pair_cosine
    >>> print(f"{pair_cosine(1.0, 0.0, beta=0.0):.10f}")
    0.7615941560
    """
    return equiangular_cosine(t, 2, beta, gamma0, unnormalised)


def weighted_pair_speed(
    angle: ArrayLike = 1.0, beta: ArrayLike = 1.0, m: ArrayLike = 0.5
) -> Numbers:
    """Speed of the angle between two clusters of masses m and 1 - m under SA.

        dphi/dt = -[ (1-m) w / (m + (1-m) w) + m w / (1 - m + m w) ] sin(phi),
        w = e^(beta (cos(phi) - 1))

    Letters: phi the angle, m the mass of one cluster. Under USA the speed is -e^(beta cos(phi))
    sin(phi) for any m.

    Source: arXiv 2312.10794, (SA) for two tokens with weights.

    >>> from tokenflock.theory import weighted_pair_speed
    >>> print(f"{weighted_pair_speed(1.0, 4.0, m=0.25):.8f}")
    -0.31412144
    """
    angle, beta, m = finite("angle", angle), finite("beta", beta), between("m", m, 0, 1, "0.5")
    with np.errstate(over="ignore"):
        # 1/w, so that a far pair gives 0 and never 0/0
        inverse = np.exp(beta * (1 - np.cos(angle)))
    pull = (1 - m) / (m * inverse + 1 - m) + m / ((1 - m) * inverse + m)
    return (-pull * np.sin(angle))[()]


def merging_time(
    angle: ArrayLike = 1.0, beta: ArrayLike = 1.0, delta: ArrayLike = 1e-3, m: ArrayLike = 0.5
) -> Numbers:
    """Time for two clusters of masses m and 1 - m to come within delta of each other under SA.

        t: cos(phi(t)) = 1 - delta,   phi(0) = angle,   phi as in `weighted_pair_speed`

    In closed form for m = 1/2 (`pair_time`), by quadrature otherwise; 0 for clusters that are
    within delta already.

    Source: arXiv 2312.10794, (SA) for two tokens with weights.

    >>> from tokenflock.theory import merging_time
    >>> print(f"{merging_time(2.0, 4.0):.6f}  {merging_time(2.0, 4.0, m=0.25):.6f}")
    43.005000  27.682829
    """
    angle, beta = between("angle", angle, 0, np.pi, "1.0"), finite("beta", beta)
    delta, m = between("delta", delta, 0, 1, "1e-3"), between("m", m, 0, 1, "0.5")
    # y = log((1 + cos)/(1 - cos)), the clock of two tokens, from the angle itself and from delta
    y0, y1 = -2 * np.log(np.tan(angle / 2)), np.log(2 - delta) - np.log(delta)
    y0, y1, beta, m = np.broadcast_arrays(y0, y1, beta, m)
    if np.all(m == 0.5):
        return np.where(y0 < y1, elapsed(y0, y1, 2.0, beta, False), 0.0)[()]
    return np.vectorize(_weighted_time, otypes=[float])(angle, y0, y1, beta, m)[()]


def _weighted_time(angle: float, y0: float, y1: float, beta: float, m: float) -> float:
    """Quadrature in s = -y/2 = log tan(phi/2), in which a free pair moves at unit speed."""
    if y0 >= y1:
        return 0.0
    if beta * (1 - np.cos(angle)) > 690:
        return np.inf

    def slowness(s: float) -> float:
        phi = 2 * np.arctan(np.exp(s))
        return -np.sin(phi) / weighted_pair_speed(phi, beta, m)

    return quad(slowness, -y1 / 2, -y0 / 2, epsabs=0, epsrel=1e-12, limit=400)[0]


def merging_growth(angle: ArrayLike = 1.0, beta: ArrayLike = 10.0) -> Numbers:
    """Leading growth of the merging time of two equal clusters for large beta.

        t ~ e^(beta (1 - cos(phi))) / (2 beta sin(phi)^2)

    Letters: phi the initial angle (fixed), beta the inverse temperature. As phi tends to pi the
    exponent becomes 2 beta.

    Source: large-beta limit of `pair_time`; the exponential time scale of arXiv 2410.06833.

    >>> from tokenflock.theory import merging_growth
    >>> print(f"{merging_growth(1.5, 20.0):.5e}")
    2.96205e+06
    """
    angle, beta = between("angle", angle, 0, np.pi, "1.0"), nonzero("beta", beta, "10.0")
    with np.errstate(over="ignore"):
        return (np.exp(beta * (1 - np.cos(angle))) / (2 * beta * np.sin(angle) ** 2))[()]


def pairing_angle(s: ArrayLike = 0.3, angle: ArrayLike = 1.2, m: ArrayLike = 0.5) -> Numbers:
    """Angle of the closest pair of clusters in the pairing clock, the limit of large beta.

        tan(phi/2) = tan(angle/2) e^(-(m'/m + m/m') s),   ds = e^(-beta (1 - <x_1, x_2>)) dt,
        m' = 1 - m

    Letters: s the state-dependent clock, m : m' the masses of the pair (only their ratio matters).

    Source: the pairing phase of arXiv 2509.25040; arXiv 2512.01868 prints a clock that is right for
    equal masses.

    >>> from tokenflock.theory import pairing_angle
    >>> print(f"{pairing_angle(0.3, 1.2):.8f}")
    0.71835172
    """
    s, angle = at_least("s", s, 0, "0.3"), between("angle", angle, 0, np.pi, "1.2")
    m = between("m", m, 0, 1, "0.5")
    return (2 * np.arctan(np.tan(angle / 2) * np.exp(-((1 - m) / m + m / (1 - m)) * s)))[()]

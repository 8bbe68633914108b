"""The mean field on the circle at beta = 0, solved: Poisson kernels stay Poisson kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ._check import Numbers, between, finite, within


def poisson_order(t: ArrayLike = 1.0, r0: ArrayLike = 0.3) -> Numbers:
    """Order parameter r(t) of the beta = 0 mean field that starts from a Poisson kernel.

        dr/dt = r (1 - r^2) / 2,   r(t) = r0 / sqrt(r0^2 + (1 - r0^2) e^(-t))

    Letters: r = |int e^(i theta) dmu|.

    Source: Ott and Antonsen, Chaos 18, 037113 (2008), for the Kuramoto model that arXiv 2312.10794,
    (4.1) and (7.2), is at beta = 0.

    >>> from tokenflock.theory import poisson_order
    >>> print(f"{poisson_order(3.0, 0.3):.10f}")
    0.8155720884
    """
    t, r0 = finite("t", t), within("r0", r0, 0, 1, "0.3")
    with np.errstate(divide="ignore"):  # r^2/(1-r^2) grows like e^t, from 0 and infinity nowhere
        return np.sqrt(expit(t + 2 * np.log(r0) - np.log1p(-(r0**2))))[()]


def poisson_quantile(u: ArrayLike = 0.5, r: ArrayLike = 0.3) -> Numbers:
    """Quantile of the Poisson kernel: the angle with mass u to its left in (-pi, pi).

        theta(u) = 2 arctan( (1-r)/(1+r) tan(pi (u - 1/2)) )

    With u = (i - 1/2)/n it gives n tokens that follow `poisson_order` as n grows.

    Source: inverse of the distribution function of `poisson_density`.

    >>> from tokenflock.theory import poisson_quantile
    >>> print(f"{poisson_quantile(0.75, 0.3):.8f}")
    0.98788274
    """
    u, r = between("u", u, 0, 1, "0.5"), within("r", r, 0, 1, "0.3")
    return (2 * np.arctan((1 - r) / (1 + r) * np.tan(np.pi * (u - 0.5))))[()]


def poisson_density(theta: ArrayLike = 0.0, r: ArrayLike = 0.3) -> Numbers:
    """Density of the Poisson kernel with order parameter r, centred at 0.

        f(theta) = (1 - r^2) / (2 pi (1 - 2 r cos(theta) + r^2)),   int e^(ik theta) f = r^|k|

    Source: Ott and Antonsen, Chaos 18, 037113 (2008).

    >>> from tokenflock.theory import poisson_density
    >>> print(f"{poisson_density(0.0, 0.5):.8f}")
    0.47746483
    """
    theta, r = finite("theta", theta), within("r", r, 0, 1 - 1e-15, "0.3")
    return ((1 - r**2) / (2 * np.pi * ((1 - r) ** 2 + 4 * r * np.sin(theta / 2) ** 2)))[()]

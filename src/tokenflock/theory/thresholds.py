"""The range of attraction, and the beta beyond which it is shorter than the gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, above, at_least, finite, whole, within


class Minimum(NamedTuple):
    """Where a function is smallest, and how small."""

    tau: Numbers
    value: Numbers


def attraction_range(beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Angle tau*_beta within which two tokens stabilise each other.

        beta sin^2(tau*) = (d-1) cos(tau*),
        cos(tau*) = (-(d-1) + sqrt((d-1)^2 + 4 beta^2)) / (2 beta)

    the positive zero of `interaction_curvature`; pi/2 at beta = 0 and about sqrt((d-1)/beta) for
    large beta.

    Source: arXiv 2312.10794, Appendix B (proof of Theorem 5.1).

    >>> from tokenflock.theory import attraction_range
    >>> print(attraction_range([1, 2, 6]).round(8))
    [0.90455689 0.67488885 0.40237665]
    """
    beta, d = at_least("beta", finite("beta", beta), 0, "1.0"), whole("d", d, 2, "2")
    slope = 2 / (d - 1 + np.hypot(d - 1, 2 * beta))  # cos(tau)/beta, without cancellation
    return np.arctan2(np.sqrt((d - 1) * slope), beta * slope)[()]


def interaction_curvature(tau: ArrayLike = 0.0, beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Second derivative of the pair interaction at angle tau: the entries of the Hessian of the
    energy.

        g(tau) = ((d-1) cos(tau) - beta sin^2(tau)) e^(beta cos(tau))

    positive for |tau| < tau*_beta, negative outside; on the circle the Hessian of E_beta is n^-2
    g(theta_i - theta_j).

    Source: arXiv 2312.10794, Appendix B and Figure 6.

    >>> from tokenflock.theory import interaction_curvature
    >>> print(f"{interaction_curvature(0.0, 2.0):.6f}")
    7.389056
    """
    tau, beta, d = finite("tau", tau), finite("beta", beta), whole("d", d, 2, "2")
    return (((d - 1) * np.cos(tau) - beta * np.sin(tau) ** 2) * np.exp(beta * np.cos(tau)))[()]


def curvature_minimum(beta: ArrayLike = 2.0, d: ArrayLike = 2) -> Minimum:
    """Angle and value of the deepest point of `interaction_curvature`, for beta > 0.

        cos(tau) = (-(d+1) + sqrt((d-1)^2 + 4 + 4 beta^2)) / (2 beta),
        or tau = pi where this is below -1

    Source: arXiv 2312.10794, Figure 6 (derivative of its g).

    >>> from tokenflock.theory import curvature_minimum
    >>> print("{:.7f} {:.7f}".format(*curvature_minimum(2.0)))
    1.1640274 -2.8488856
    """
    beta, d = above("beta", finite("beta", beta), 0, "2.0"), whole("d", d, 2, "2")
    # without cancellation, and with nothing squared that is large
    root = np.hypot(beta, np.hypot((d - 1) / 2, 1.0))
    cosine = np.maximum((beta - (d - 1) / beta) / ((d + 1) / 2 + root), -1.0)
    square = np.where(cosine > -1, (d + 1) * cosine + (d - 1) / beta, 0.0) / beta  # sin(tau)^2
    tau = np.arctan2(np.sqrt(np.maximum(square, 0.0)), cosine)[()]
    return Minimum(tau, interaction_curvature(tau, beta, d))


def saddle_threshold(n: ArrayLike = 32, angle: ArrayLike = np.pi / 2, d: ArrayLike = 2) -> Numbers:
    """The beta beyond which n - 1 ranges of attraction fit into an angle.

        (n-1) tau*_beta = angle   <=>   beta = (d-1) cos(tau) / sin^2(tau),   tau = angle/(n-1)

    For angle = pi/2 the published proof that every critical point other than consensus is a saddle
    goes through; angle = pi (tokens in an open half circle) suffices, and gives the n^2/pi^2 quoted
    in the text.

    Letters: angle the one into which the ranges fit, at most pi.

    Source: arXiv 2312.10794, Theorem 5.1, Appendix B, and the remark after Problem 3.

    >>> from tokenflock.theory import saddle_threshold
    >>> print(saddle_threshold([4, 32]).round(8))
    [  3.46410162 389.31181341]
    """
    n, angle, d = (
        whole("n", n, 2, "32"),
        within("angle", above("angle", angle, 0, "1.5"), 0, np.pi, "1.5"),
        whole("d", d, 2, "2"),
    )
    tau = angle / (n - 1)
    return np.where(tau < np.pi / 2, (d - 1) * np.cos(tau) / np.sin(tau) ** 2, 0.0)[()]


def triangle_eigenvalue(beta: ArrayLike = -1.0) -> Numbers:
    """Eigenvalue of three equal clusters at 120 degrees: the witness against synchronisation for
    beta < -2/3.

        USA:  (1/2 + 3 beta/4) e^(-beta/2)

    negative, so the three clusters are stable, exactly when beta < -2/3.

    Source: arXiv 2507.22857 (synchronisation on the circle holds for beta >= -0.16 and fails for
    beta < -2/3).

    >>> from tokenflock.theory import triangle_eigenvalue
    >>> print(f"{triangle_eigenvalue(-1.0):.6f}")
    -0.412180
    """
    beta = finite("beta", beta)
    return ((0.5 + 0.75 * beta) * np.exp(-beta / 2))[()]

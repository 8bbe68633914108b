"""Equal clusters at the corners of a regular polygon: how unstable, how long they live."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, finite, refuse, whole

MOST = 10_000_000  # numbers that are held at once


def polygon_eigenvalue(
    p: ArrayLike = 1, n: ArrayLike = 3, beta: ArrayLike = 1.0, unnormalised: bool = False
) -> Numbers:
    """Eigenvalue of mode p about n equal clusters at the corners of a regular n-gon on the circle.

        USA:  lambda_p = (1/n) sum_(m=1)^(n-1) g(2 pi m/n) (cos(2 pi p m/n) - 1),
              g(x) = (cos x - beta sin^2 x) e^(beta cos x)
        SA:   (n / Z_0) lambda_p,   Z_0 = sum_m e^(beta cos(2 pi m/n))

    Letters: p the mode, n the number of corners; it moves corner j by cos(2 pi p j/n). Positive
    means unstable. n = 2: e^(-beta) (USA) and 2/(1 + e^(2 beta)) (SA).

    Source: linearisation of arXiv 2312.10794, (7.1); g as in its Appendix B and Figure 6.

    >>> from tokenflock.theory import polygon_eigenvalue
    >>> print(f"{polygon_eigenvalue(2, 4, beta=4.0, unnormalised=True):.6f}")
    4.000000
    """
    p, n, beta = np.broadcast_arrays(
        whole("p", p, 0, "1"), whole("n", n, 1, "3"), finite("beta", beta)
    )
    if n.max(initial=1) * max(1, n.size) > MOST:
        refuse("n", f"such that all corners together are at most {MOST:,}", n.max(), "3")
    m = np.arange(1, int(n.max(initial=1)))
    beta, n, p = beta[..., None], n[..., None], np.mod(p, n)[..., None]
    x = 2 * np.pi * m / n
    force = np.where(m < n, np.cos(x) - beta * np.sin(x) ** 2, 0.0) * (
        np.cos(2 * np.pi * np.mod(p * m, n) / n) - 1
    )
    if unnormalised:
        with np.errstate(over="ignore"):
            return ((force * np.exp(beta * np.cos(x))).sum(-1) / n[..., 0])[()]
    logits = beta * np.cos(x)
    # the token itself has logit beta
    top = np.maximum(beta, logits.max(-1, keepdims=True, initial=-np.inf))
    weights = np.exp(logits - top)
    total = np.where(m < n, weights, 0.0).sum(-1) + np.exp(beta - top)[..., 0]
    return ((force * weights).sum(-1) / total)[()]


def polygon_growth(n: ArrayLike = 3, beta: ArrayLike = 1.0, unnormalised: bool = False) -> Numbers:
    """Fastest growth rate about n equal clusters at the corners of a regular n-gon.

        max over 1 <= p <= n/2 of polygon_eigenvalue(p, n, beta)

    reached at p = floor(n/2) only for large beta (n = 4: beta > 0.5671).

    Source: linearisation of arXiv 2312.10794, (7.1).

    >>> from tokenflock.theory import polygon_growth
    >>> print(f"{polygon_growth(2, 0.0):.1f}")
    1.0
    """
    n, beta = np.broadcast_arrays(whole("n", n, 2, "3"), finite("beta", beta))
    if n.max(initial=2) ** 2 * max(1, n.size) / 2 > MOST:
        refuse("n", f"such that n^2 / 2 is at most {MOST:,}", n.max(), "3")
    p = np.arange(1, int(n.max(initial=2)) // 2 + 1)
    values = polygon_eigenvalue(p, n[..., None], beta[..., None], unnormalised)
    return np.where(p <= n[..., None] / 2, values, -np.inf).max(-1)[()]


def polygon_lifetime(
    n: ArrayLike = 3, beta: ArrayLike = 1.0, unnormalised: bool = False
) -> Numbers:
    """Lifetime of n equal clusters at the corners of a regular n-gon: the metastable plateaus of
    the circle.

        1 / max_p lambda_p

    inf where the polygon is stable (n = 3: beta < -2/3).

    Source: linearisation of arXiv 2312.10794, (7.1); explains the two and three clusters of its
    Figure 4.

    >>> from tokenflock.theory import polygon_lifetime
    >>> print(polygon_lifetime([2, 3], beta=4.0).round(1))
    [1491.    38.6]
    """
    growth = np.asarray(polygon_growth(n, beta, unnormalised))
    return np.where(growth > 0, 1 / np.where(growth > 0, growth, 1.0), np.inf)[()]

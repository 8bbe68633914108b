"""Attention at beta = gamma log n: between a layer that collapses and one that does nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import Numbers, above, between, cosine, finite, whole


def attention_cosine(n: ArrayLike = 100, gamma: ArrayLike = 1.5, rho: ArrayLike = 0.3) -> Numbers:
    """Cosine of the attention outputs of n equiangular tokens at beta = gamma log n, exact for
    every n.

        cos' = [ (1-rho)(2ab + (n-2)b^2) + rho ] / [ (1-rho)(a^2 + (n-1)b^2) + rho ],
        a = 1 / (1 + (n-1) n^(gamma (rho-1))),   b = (1-a)/(n-1)

    Letters: rho the common cosine of the inputs, gamma the scaling exponent, a and b the attention
    of a token to itself and to each other token. One layer of attention without residual.

    Source: arXiv 2510.05554; arXiv 2512.01868.

    >>> from tokenflock.theory import attention_cosine
    >>> print(f"{attention_cosine(100, 1 / 0.7, 0.3):.10f}")
    0.6379501414
    """
    n, gamma, rho = (
        whole("n", n, 2, "100"),
        finite("gamma", gamma, "1.5"),
        between("rho", rho, -1, 1, "0.3"),
    )
    rho = cosine("rho", rho, n, "0.3")
    # in a - b and 1 + (n-1) rho, which keep their digits where the outputs nearly cancel
    logit = gamma * (rho - 1) * np.log(n)
    apart = -np.expm1(logit) / (1 + (n - 1) * np.exp(logit))
    shared, own = 1 + (n - 1) * rho, (1 - rho) * apart**2
    return ((shared - own) / (shared + (n - 1) * own))[()]


def attention_cosine_limit(gamma: ArrayLike = 1.5, rho: ArrayLike = 0.3) -> Numbers:
    """Limit of `attention_cosine` as n grows: three phases.

        gamma < 1/(1-rho): 1 (collapse),   = : 4 rho / (1 + 3 rho),   > : rho (identity)

    Letters: gamma the scaling exponent, rho the common cosine of the inputs.

    Source: arXiv 2510.05554; arXiv 2512.01868.

    >>> from tokenflock.theory import attention_cosine_limit
    >>> print(attention_cosine_limit([1.0, 1 / 0.7, 2.0], 0.3).round(10))
    [1.         0.63157895 0.3       ]
    """
    rho = between("rho", rho, 0, 1, "0.3")
    phase = _phase(gamma, rho)
    return np.select([phase < 0, phase > 0], [np.ones_like(phase), rho], 4 * rho / (1 + 3 * rho))[
        ()
    ]


def gradient_limit(
    gamma: ArrayLike = 1.5, rho: ArrayLike = 0.3, d: ArrayLike = 512, q: ArrayLike = 1.0
) -> Numbers:
    """Limit of the squared gradient norm per coordinate of one normalised attention layer as n
    grows.

        |grad X'|^2 / (n d)  ->  0,  (1 - 1/d)/(4q),  (1 - 1/d)/q   for gamma <, =, > 1/(1-rho)

    Letters: X' = A N(X), gamma the scaling exponent, rho the common cosine of the inputs, q =
    |x_i|^2.

    Source: arXiv 2510.05554.

    >>> from tokenflock.theory import gradient_limit
    >>> print(gradient_limit([1.0, 1 / 0.7, 2.0], 0.3, d=2))
    [0.    0.125 0.5  ]
    """
    d, q = whole("d", d, 1, "512"), above("q", finite("q", q), 0, "1.0")
    phase = _phase(gamma, between("rho", rho, 0, 1, "0.3"))
    return (np.select([phase < 0, phase > 0], [0.0, 1.0], 0.25) * (1 - 1 / d) / q)[()]


def critical_scaling(rho: ArrayLike = 0.3) -> Numbers:
    """The exponent gamma at which attention with beta = gamma log n is critical.

        gamma_c = 1 / (1 - rho)

    Source: arXiv 2510.05554.

    >>> from tokenflock.theory import critical_scaling
    >>> print(critical_scaling(0.5))
    2.0
    """
    return (1 / (1 - between("rho", rho, -1, 1, "0.3")))[()]


def _phase(gamma: ArrayLike, rho: NDArray) -> NDArray:
    """-1, 0 or 1: below, at or above the critical exponent (to rounding)."""
    distance = finite("gamma", gamma, "1.5") * (1 - rho) - 1
    return np.where(np.abs(distance) < 1e-12, 0.0, np.sign(distance))

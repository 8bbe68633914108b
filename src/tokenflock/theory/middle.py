"""Lost in the middle: the influence of a position in a causal model with a recency bias."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ._check import Numbers, above, at_least, finite, within
from ._special import log_ive

_MODES = np.arange(1, 21)


def middle_critical_time(
    beta: ArrayLike = 1.0, decay: ArrayLike = 1.0, M: ArrayLike = 8.0
) -> Numbers:
    """Depth up to which the influence of a position is U-shaped: lost in the middle.

        t_crit = 2 (1 - e^(-decay)) sum_k w_k a_k / sum_k w_k a_k^2,
        a_k = k^2 I_k(beta),   w_k = e^(-pi^2 k^2/(2 M^2)),   k <= 20

    Letters: decay the strength lambda of the recency bias (ALiBi), M the resolution. For t < t_crit
    the influence rises again towards the end of the context; later only the beginning is heard.

    Source: arXiv 2605.09213.

    >>> from tokenflock.theory import middle_critical_time
    >>> print(f"{middle_critical_time(1.0, 1.0, 8.0):.10f}")
    2.4574889803
    """
    beta, decay = (
        above("beta", finite("beta", beta), 0, "1.0"),
        above("decay", finite("decay", decay), 0, "1.0"),
    )
    weights = _weights(above("M", M, 0, "8.0"))
    # times e^beta, restored below
    speeds = _MODES**2 * np.exp(log_ive(_MODES, beta[..., None]))
    ratio = (weights * speeds).sum(-1) / (weights * speeds**2).sum(-1)
    return (-2 * np.expm1(-decay) * ratio * np.exp(-beta))[()]


def position_influence(
    s: ArrayLike = 0.5,
    t: ArrayLike = 1.0,
    beta: ArrayLike = 1.0,
    decay: ArrayLike = 1.0,
    M: ArrayLike = 8.0,
) -> Numbers:
    """Influence of the token at relative position s on the last one, at depth t.

        S_t(s) = decay e^(decay s)/(e^decay - 1) sum_k w_k psi_(a_k t)(Y),
        Y = log((e^decay - 1)/(e^(decay s) - 1)),
        psi_c(y) = sum_j c^(j+1) y^j / (j! (j+1)!) = sqrt(c/y) I_1(2 sqrt(c y))

    Letters: s the relative position (0 < s <= 1), t the depth, a_k and w_k as in
    `middle_critical_time`. inf beyond the numbers (beta above a few).

    Source: arXiv 2605.09213.

    >>> from tokenflock.theory import position_influence
    >>> print(position_influence([0.1, 0.5, 1.0], t=1.0).round(4))
    [1.2822 1.2655 1.6383]
    """
    s, t = (
        above("s", within("s", s, 0, 1, "0.5"), 0, "0.5"),
        at_least("t", finite("t", t), 0, "1.0"),
    )
    beta = above("beta", finite("beta", beta), 0, "1.0")
    decay, weights = (
        above("decay", finite("decay", decay), 0, "1.0"),
        _weights(above("M", M, 0, "8.0")),
    )
    share = -np.expm1(-decay)  # 1 - e^(-decay): all in logarithms, for e^decay overflows
    y = (decay * (1 - s) + np.log(share / -np.expm1(-decay * s)))[..., None]
    with np.errstate(divide="ignore", over="ignore"):
        log_c = (
            2 * np.log(_MODES) + log_ive(_MODES, beta[..., None]) + (beta + np.log(t))[..., None]
        )
        log_product = np.maximum(log_c + np.log(y), np.log(1e-30))  # psi_c(y) -> c as c y -> 0
        root = np.exp(np.minimum(log_product / 2, 690.0))
        log_psi = log_c + log_ive(1.0, 2 * root) + 2 * root - log_product / 2
        kernel = logsumexp(np.log(weights) + log_psi, axis=-1)
        return (decay / share * np.exp(decay * (s - 1) + kernel))[()]


def _weights(M: NDArray) -> NDArray:
    return np.exp(-((np.pi * _MODES / M[..., None]) ** 2) / 2)

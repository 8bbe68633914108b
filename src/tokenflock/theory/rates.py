"""How fast: growth of ripples about the uniform measure, and the approach to consensus."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import Numbers, above, at_least, choice, finite, refuse, whole
from ._roots import bracketed_root
from ._special import log_bessel_ratio, log_order_ratio
from .polygon import MOST

_MODELS = ("SA", "USA", "Sinkhorn")


def growth_rate(
    k: ArrayLike = 1,
    beta: ArrayLike = 1.0,
    d: ArrayLike = 2,
    model: str = "SA",
    kappa: ArrayLike = np.inf,
) -> Numbers:
    """Growth rate of a degree-k ripple of the uniform measure.

        USA:       k(k+d-2) lambda_k / beta - k(k+d-2)/kappa
        SA:        k(k+d-2) r_k / beta - k(k+d-2)/kappa,                 r_k = lambda_k / lambda_0
        Sinkhorn:  k(k+d-2) r_k / (1 + r_k) / beta - k(k+d-2)/kappa

    Letters: lambda_k the eigenvalue of the kernel (`kernel_eigenvalue`), d ambient dimension, model
    the attention (SA, USA or Sinkhorn), kappa the inverse noise (inf: none), that of dx = ... +
    sqrt(2/kappa) dW. On the circle USA gives k^2 I_k(beta)/beta.

    Source: arXiv 2410.23228 (USA on the circle); the linearisation of arXiv 2312.10794, (3.1)-(3.8)
    in any d; doubly stochastic attention of arXiv 2110.11773; noise of arXiv 2512.01868.

    >>> from tokenflock.theory import growth_rate
    >>> print(growth_rate([1, 2, 3, 4], beta=4.0).round(8))
    [0.21588065 0.56823869 0.66438881 0.50125128]
    """
    k, beta, d = whole("k", k, 0, "1"), finite("beta", beta), whole("d", d, 2, "3")
    kappa = above("kappa", kappa, 0, "10.0")
    laplace = k * (k + d - 2)
    drift = _drift(k, beta, d, choice("model", model, _MODELS))
    # k = 0 is mass, which is conserved
    return (laplace * (np.where(k == 0, 0.0, drift) - 1 / kappa))[()]


def _drift(k: NDArray, beta: NDArray, d: NDArray, model: str) -> NDArray:
    """The rate per unit of the Laplacian: lambda_k / beta, r_k / beta, ... and limits at 0."""
    size = np.where(beta == 0, 1.0, np.abs(beta))
    log_ratio = log_order_ratio(k, size, d)
    if model == "USA":
        log_ratio = log_ratio + log_bessel_ratio(0, size, d, scaled=False)
    sign = np.where((beta < 0) & (k % 2 == 0), -1.0, 1.0)  # of lambda_k / beta
    if model == "Sinkhorn":
        ratio = np.where(beta < 0, (-1.0) ** k, 1.0) * np.exp(log_ratio)
        value = ratio / (1 + ratio) / np.where(beta == 0, 1.0, beta)
    else:
        with np.errstate(over="ignore"):
            value = sign * np.exp(log_ratio - np.log(size))
    return np.where(beta == 0, np.where(k == 1, 1 / d, 0.0), value)


def fastest_mode(
    beta: ArrayLike = 1.0, d: ArrayLike = 2, model: str = "SA", kappa: ArrayLike = np.inf
) -> Numbers:
    """Degree of the fastest-growing ripple of the uniform measure: the clusters to expect first.

        argmax over k >= 1 of growth_rate(k),   about sqrt(2 beta) for large beta

    The same for SA and USA without noise.

    Source: arXiv 2410.23228.

    >>> from tokenflock.theory import fastest_mode
    >>> print(fastest_mode([1, 4, 5, 7, 9]))
    [1. 3. 3. 4. 4.]
    """
    beta, d = at_least("beta", finite("beta", beta), 0, "1.0"), whole("d", d, 2, "3")
    beta, d, kappa = np.broadcast_arrays(beta, d, above("kappa", kappa, 0, "10.0"))
    if beta.max(initial=0) > 1e10:
        refuse("beta", "at most 1e10", float(beta.max()), "4.0")
    count = int(np.sqrt(2 * beta.max(initial=0))) + 6
    if choice("model", model, _MODELS) == "USA" and np.isinf(kappa).all():
        model = "SA"  # the same order, and no overflow
    while True:
        if count * beta.size > MOST:
            wanted = f"such that all degrees to compare are at most {MOST:,}"
            refuse("beta", wanted, f"{beta.size:,} of up to {beta.max():g}", "4.0")
        modes = np.arange(1, count + 1)
        rates = growth_rate(modes, beta[..., None], d[..., None], model, kappa[..., None])
        best = np.argmax(rates, axis=-1)
        if best.max(initial=0) < count - 1:  # past the top: later ones are slower still
            return modes[best].astype(float)[()]
        count *= 2


def mode_switch(k: ArrayLike = 1, d: ArrayLike = 2, model: str = "SA") -> Numbers:
    """The beta at which the fastest ripple changes from degree k to degree k + 1.

        beta: growth_rate(k, beta) = growth_rate(k+1, beta)

    The same for SA and USA.

    Source: follows arXiv 2410.23228.

    >>> from tokenflock.theory import mode_switch
    >>> print(mode_switch([1, 2, 3]).round(8))
    [1.04445686 3.16543444 6.21129838]
    """
    k, d = np.broadcast_arrays(whole("k", k, 1, "1"), whole("d", d, 2, "3"))
    model = "SA" if choice("model", model, _MODELS) == "USA" else model

    def lead(beta: NDArray) -> NDArray:
        step = np.log1p(1 / k) + np.log1p(1 / (k + d - 2)) + log_order_ratio(1, beta, d + 2 * k)
        if model != "Sinkhorn":
            return step
        ratio = np.exp(log_order_ratio(k, beta, d))
        next_ratio = np.exp(log_order_ratio(k + 1, beta, d))
        return step + np.log1p(ratio) - np.log1p(next_ratio)

    high = (k + d) * (k + 1.0)
    while np.any(behind := lead(high) < 0):
        high = np.where(behind, 2 * high, high)
    return bracketed_root(lead, np.full(k.shape, 1e-3), high)[()]


def terminal_rate(beta: ArrayLike = 1.0, unnormalised: bool = False) -> Numbers:
    """Rate at which the flow closes the last gap to consensus.

        1 - <x_i, x_j> ~ e^(-2t) (SA),   e^(-2 e^beta t) (USA)

    for every n and d. Source: linearisation at consensus; sharpens arXiv 2312.10794, Theorem 6.3.

    >>> from tokenflock.theory import terminal_rate
    >>> print(f"{terminal_rate(1.0)} {terminal_rate(1.0, unnormalised=True):.6f}")
    2.0 5.436564
    """
    beta = finite("beta", beta)
    with np.errstate(over="ignore"):
        return (2 * (np.exp(beta) if unnormalised else np.ones_like(beta)))[()]


def layer_terminal_rate(
    h: ArrayLike = 0.1, beta: ArrayLike = 0.0, unnormalised: bool = False
) -> Numbers:
    """Rate per unit of time at which layers close the last gap to consensus.

        SA:  2 log(1 + h) / h,   USA:  2 log(1 + h e^beta) / h

    a layer x <- normalize(x + h A x) shrinks differences inside a cluster by 1/(1+h), where the
    flow shrinks e^(-h).

    Source: linearisation of the layer map of arXiv 2312.10794, at consensus.

    >>> from tokenflock.theory import layer_terminal_rate
    >>> print(f"{layer_terminal_rate(0.1):.6f}")
    1.906204
    """
    h, beta = above("h", finite("h", h), 0, "0.1"), finite("beta", beta)
    with np.errstate(over="ignore"):
        return (2 * np.log1p(h * (np.exp(beta) if unnormalised else np.ones_like(beta))) / h)[()]


def critical_noise(beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Inverse noise kappa_c beyond which the uniform measure loses stability (USA with noise).

        kappa_c = beta / lambda_1(beta, d);   on the circle beta / I_1(beta);   d as beta -> 0

    Letters: dx_i = P(n^-1 sum_j e^(beta<x_i,x_j>) x_j) dt + sqrt(2/kappa) dW_i. Twice the constant
    K_# of the source.

    Source: arXiv 2412.14813; arXiv 2510.20094.

    >>> from tokenflock.theory import critical_noise
    >>> print(f"{critical_noise(1.0, 2):.10f}")
    1.7694132377
    """
    beta, d = at_least("beta", finite("beta", beta), 0, "1.0"), whole("d", d, 2, "3")
    return (1 / _drift(np.ones_like(d), beta, d, "USA"))[()]


def tricritical_beta(d: ArrayLike = 2) -> Numbers:
    """The beta_* up to which the noisy phase transition is continuous (USA with noise).

        I_(d/2+1)(beta_*) / I_(d/2)(beta_*) = 1/d

    Source: arXiv 2510.20094; arXiv 2604.16288.

    >>> from tokenflock.theory import tricritical_beta
    >>> print(f"{tricritical_beta(2):.10f}")
    2.4469183113
    """
    d = whole("d", d, 2, "3")

    def excess(beta: NDArray) -> NDArray:
        return log_order_ratio(1, beta, d + 2) + np.log(d)

    return bracketed_root(excess, np.full(d.shape, 1e-3), np.full(d.shape, 10.0))[()]

"""The attention kernel on the sphere: its eigenvalues, and the energies of the two extreme
measures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, finite, nonzero, whole
from ._special import log_bessel_ratio


def log_kernel_eigenvalue(k: ArrayLike = 1, beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Logarithm of the size of the k-th eigenvalue of the kernel e^(beta<x,y>), for any order and
    any beta.

        log |lambda_k(beta, d)|

    Finite where lambda_k itself would overflow (large beta) or underflow (large k or d); -inf at
    beta = 0, k >= 1.

    Source: the Funk-Hecke formula; arXiv 2312.10794, Proposition 3.4 rests on lambda_k > 0.

    >>> from tokenflock.theory import log_kernel_eigenvalue
    >>> print(f"{log_kernel_eigenvalue(2, 1e4, 3):.6f}")
    9990.096212
    """
    k, beta, d = whole("k", k, 0, "1"), finite("beta", beta), whole("d", d, 2, "3")
    return log_bessel_ratio(k, np.abs(beta), d, scaled=False)[()]


def kernel_eigenvalue(
    k: ArrayLike = 1, beta: ArrayLike = 1.0, d: ArrayLike = 2, scaled: bool = False
) -> Numbers:
    """Eigenvalue of the kernel e^(beta<x,y>) on spherical harmonics of degree k.

        lambda_k = Gamma(d/2) (2/beta)^(d/2-1) I_(k+d/2-1)(beta)

    Letters: k degree, beta inverse temperature (either sign), d ambient dimension, I the modified
    Bessel function; on the circle lambda_k = I_k(beta). With `scaled` the value is multiplied by
    e^(-beta), which never overflows.

    Source: the Funk-Hecke formula; arXiv 2312.10794, proof of Proposition 3.4.

    >>> from tokenflock.theory import kernel_eigenvalue
    >>> print(f"{kernel_eigenvalue(0, 1.0, 3):.10f}")
    1.1752011936
    """
    k, beta, d = whole("k", k, 0, "1"), finite("beta", beta), whole("d", d, 2, "3")
    size = np.abs(beta)
    sign = np.where((beta < 0) & (k % 2 == 1), -1.0, 1.0)
    with np.errstate(over="ignore"):
        logarithm = log_bessel_ratio(k, size, d, scaled=False)
        if scaled:  # e^(-beta) belongs to it where beta > 0, and comes on top where beta < 0
            below = log_bessel_ratio(k, size, d)
            logarithm = np.where(beta < 0, logarithm + size, below)
        return (sign * np.exp(logarithm))[()]


def uniform_energy(beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Energy of the uniform measure on the sphere, the minimum of E_beta.

        E_beta[sigma_d] = lambda_0(beta, d) / (2 beta),
        E_beta[mu] = (1/(2 beta)) int int e^(beta<x,y>) dmu dmu

    Source: arXiv 2312.10794, (3.5) and Proposition 3.4.

    >>> from tokenflock.theory import uniform_energy
    >>> print(f"{uniform_energy(4.0, 2):.10f}")
    1.4127402440
    """
    beta = nonzero("beta", beta)
    return (kernel_eigenvalue(0, beta, d) / (2 * beta))[()]


def dirac_energy(beta: ArrayLike = 1.0) -> Numbers:
    """Energy of all tokens at one point, the maximum of E_beta.

        E_beta[delta_x] = e^beta / (2 beta)

    Source: arXiv 2312.10794, (3.5) and Proposition 3.4.

    >>> from tokenflock.theory import dirac_energy
    >>> print(f"{dirac_energy(1.0):.10f}")
    1.3591409142
    """
    beta = nonzero("beta", beta)
    with np.errstate(over="ignore"):
        return (np.exp(beta) / (2 * beta))[()]


def sampled_energy(n: ArrayLike = 32, beta: ArrayLike = 1.0, d: ArrayLike = 2) -> Numbers:
    """Expected energy of n independent uniform tokens.

        E[E_beta] = ( e^beta / n + (1 - 1/n) lambda_0(beta, d) ) / (2 beta)

    The diagonal costs e^beta / n: it is what a start at random lies above the uniform measure.

    Source: expectation of arXiv 2312.10794, Remark 3.8.

    >>> from tokenflock.theory import sampled_energy
    >>> print(f"{sampled_energy(32, 1.0, 2):.6f}")
    0.655724
    """
    n = whole("n", n, 1, "32")
    others = np.where(n == 1, 0.0, uniform_energy(beta, d))  # not inf * 0 for a single token
    return (dirac_energy(beta) / n + (1 - 1 / n) * others)[()]

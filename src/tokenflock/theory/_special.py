"""Special functions in forms that neither overflow nor underflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expi, gammaln, ive

_FAR = 50.0  # beyond this the divergent series of Ei is exact to double precision
_TERMS = 40


def scaled_expi(x: ArrayLike) -> NDArray[np.float64]:
    """e^(-x) Ei(x) for real x of either sign; -inf at 0. Note e^x E1(x) = -scaled_expi(-x)."""
    x = np.asarray(x, dtype=np.float64)
    far = np.abs(x) >= _FAR
    near, distant = np.where(far, 1.0, x), np.where(far, x, _FAR)
    tail = np.ones_like(distant)
    for k in range(_TERMS, 0, -1):
        tail = 1.0 + tail * k / distant
    return np.where(far, tail / distant, expi(near) * np.exp(-near))


def log_ive(order: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """log(I_order(x) e^(-x)) for x >= 0: of any size, where SciPy's own gives up at 2e9."""
    order, x = np.asarray(order, np.float64), np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        return np.where((order >= 200) | (x > 1e4), _log_debye(order, x), np.log(ive(order, x)))


def log_bessel_ratio(k: ArrayLike, x: ArrayLike, d: ArrayLike) -> NDArray[np.float64]:
    """log of Gamma(d/2) (2/x)^(d/2-1) I_(k+d/2-1)(x) e^(-x) for x >= 0, whatever order and x."""
    k, x, d = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, x, d)))
    order = k + d / 2 - 1
    series = x * x / 4 <= 10 * (order + 1)
    near, far = np.where(series, x, 0.0), np.where(series, 1.0, x)
    with np.errstate(divide="ignore"):
        power = np.where(k == 0, 0.0, k * np.log(np.where(k == 0, 1.0, near) / 2))
    front = gammaln(d / 2) - gammaln(d / 2 + k)  # first, for both may be large
    small = front + power + _log_series(order + 1, near**2 / 4) - near
    large = gammaln(d / 2) + (d / 2 - 1) * np.log(2 / far) + log_ive(order, far)
    return np.where(series, small, large)


def _log_series(b: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """log 0F1(; b; z) for 0 <= z <= 10 b: the power series, all terms positive."""
    total = np.zeros_like(z)
    for j in range(70, 0, -1):
        total = (1.0 + total) * z / (j * (b + j - 1))
    return np.log1p(total)


def _log_debye(order: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(I_order(x) e^(-x)) by the uniform expansion (DLMF 10.41.3), where order or x is large."""
    root = np.hypot(order, x)
    q = (order / root) ** 2
    u1 = (3 - 5 * q) / 24
    u2 = (81 - 462 * q + 385 * q**2) / 1152
    u3 = (30375 - 369603 * q + 765765 * q**2 - 425425 * q**3) / 414720
    u4 = (
        4465125 - 94121676 * q + 349922430 * q**2 - 446185740 * q**3 + 185910725 * q**4
    ) / 39813120
    series = u1 / root + u2 / root**2 + u3 / root**3 + u4 / root**4
    exponent = order * (order / (root + x)) - order * np.arcsinh(order / x)
    return exponent - (np.log(2 * np.pi) + np.log(root)) / 2 + np.log1p(series)

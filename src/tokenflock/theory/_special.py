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


def log_iv(order: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """log I_order(x) for x >= 0, also where I_order(x) overflows."""
    order, x = np.broadcast_arrays(np.asarray(order, np.float64), np.asarray(x, np.float64))
    far = x > 1e8
    with np.errstate(divide="ignore"):
        near = np.log(ive(order, np.where(far, 1.0, x)))
    return x + np.where(far, -np.log(2 * np.pi * np.where(far, x, 1.0)) / 2, near)


def log_bessel_ratio(k: ArrayLike, x: ArrayLike, d: ArrayLike) -> NDArray[np.float64]:
    """log of Gamma(d/2) (2/x)^(d/2-1) I_(k+d/2-1)(x) for x >= 0, for any order and any argument."""
    k, x, d = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, x, d)))
    order, z = k + d / 2 - 1, x * x / 4
    series = z <= 10 * (order + 1)
    uniform = ~series & (order >= 200)
    with np.errstate(divide="ignore"):
        x_series, x_else = np.where(series, x, 0.0), np.where(series, 1.0, x)
        power = np.where(k == 0, 0.0, k * np.log(np.where(k == 0, 1.0, x_series) / 2))
    small = gammaln(d / 2) - gammaln(d / 2 + k) + power + _log_series(order + 1, x_series**2 / 4)
    direct = np.where(series | uniform, 0.0, order)
    bessel = np.where(
        uniform,
        _log_debye(np.maximum(order, 200.0), x_else),
        np.log(ive(direct, np.where(series | uniform, 1.0, x))) + x_else,
    )
    return np.where(series, small, gammaln(d / 2) + (d / 2 - 1) * np.log(2 / x_else) + bessel)


def _log_series(b: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """log 0F1(; b; z) for 0 <= z <= 10 b: the power series, all terms positive."""
    total = np.zeros_like(z)
    for j in range(70, 0, -1):
        total = (1.0 + total) * z / (j * (b + j - 1))
    return np.log1p(total)


def _log_debye(order: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log I_order(x) by the uniform expansion (DLMF 10.41.3), for order >= 200."""
    root = np.hypot(order, x)
    p = order / root
    q = p * p
    u1 = p * (3 - 5 * q) / 24
    u2 = q * (81 - 462 * q + 385 * q**2) / 1152
    u3 = p * q * (30375 - 369603 * q + 765765 * q**2 - 425425 * q**3) / 414720
    u4 = (
        q**2
        * (4465125 - 94121676 * q + 349922430 * q**2 - 446185740 * q**3 + 185910725 * q**4)
        / 39813120
    )
    series = u1 / order + u2 / order**2 + u3 / order**3 + u4 / order**4
    return (
        root + order * np.log(x / (order + root)) - np.log(2 * np.pi * root) / 2 + np.log1p(series)
    )

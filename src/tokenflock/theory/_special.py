"""Special functions in forms that neither overflow nor underflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expi, gammaln, ive

_FAR = 50.0  # beyond this the divergent series of Ei is exact to double precision
_TERMS = 40
_LARGE = 200.0  # from this order on the uniform expansion has all digits
_BEYOND = 1e4  # and beyond this argument


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
        return np.where(
            (order >= _LARGE) | (x > _BEYOND), _log_debye(order, x), np.log(ive(order, x))
        )


def log_bessel_ratio(
    k: ArrayLike, x: ArrayLike, d: ArrayLike, scaled: bool = True
) -> NDArray[np.float64]:
    """log of Gamma(d/2) (2/x)^(d/2-1) I_(k+d/2-1)(x) for x >= 0, whatever order and x; with
    `scaled` of that times e^(-x).
    """
    x, d = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(d, np.float64))
    with np.errstate(all="ignore"):  # the first is the same for all k
        return _log_first(x, d, scaled) + log_order_ratio(k, x, d)


def log_order_ratio(k: ArrayLike, x: ArrayLike, d: ArrayLike) -> NDArray[np.float64]:
    """log of I_(k+d/2-1)(x) / I_(d/2-1)(x) for x >= 0: to all digits also for large d."""
    k, x, d = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, x, d)))
    order = d / 2 - 1
    with np.errstate(all="ignore"):
        uniform = (order >= _LARGE) | (x > _BEYOND)
        here = np.where(uniform, 1.0, x)
        apart = _log_plain(k, here, d) - _log_plain(np.zeros_like(k), here, d)
        return np.where(k == 0, 0.0, np.where(uniform, _debye_step(k, x, order), apart))


def _log_first(x: NDArray, d: NDArray, scaled: bool) -> NDArray[np.float64]:
    """`log_bessel_ratio` at k = 0: that of 0F1(; d/2; x^2/4)."""
    order = d / 2 - 1
    series = x * x / 4 <= 10 * (order + 1)
    near = np.where(series, x, 0.0)
    small = _log_series(order + 1, near * near / 4) - (near if scaled else 0.0)
    large = np.where(series, 1.0, x)
    far = gammaln(np.minimum(d / 2, _LARGE + 1)) + order * np.log(2 / large)
    far = far + log_ive(order, large) + (0.0 if scaled else large)
    far = np.where(order >= _LARGE, _debye_first(order, large, scaled), far)
    return np.where(series, small, far)


def _debye_first(order: NDArray, x: NDArray, scaled: bool) -> NDArray[np.float64]:
    """log of Gamma(v+1) (2/x)^v I_v(x) by the uniform expansion, v = order: what is large in
    Gamma(v+1) and in I_v is taken out of both.
    """
    root = np.hypot(order, x)
    rise = x * (x / (order + root))  # root - order, which is root - x + (x - order)
    rest = order * (order / (root + x)) - order if scaled else rise
    prefactors = np.log(order / root) / 2 + _log_stirling(order) + np.log1p(_debye(order, root))
    return rest - order * np.log1p(rise / (2 * order)) + prefactors


def _debye_step(k: NDArray, x: NDArray, order: NDArray) -> NDArray[np.float64]:
    """log of I_(v+k)(x) / I_v(x) by the uniform expansion, v = order: only differences are
    formed.
    """
    higher = order + k
    root, longer = np.hypot(order, x), np.hypot(higher, x)
    rise = k * ((2 * order + k) / (root + longer))  # longer - root
    steep = np.where(higher > x, np.log(higher + longer) - np.log(x), np.arcsinh(higher / x))
    step = rise - k * steep - order * np.log1p((k + rise) / (order + root))
    prefactors = np.log1p(_debye(higher, longer)) - np.log1p(_debye(order, root))
    return step - np.log1p(rise / root) / 2 + prefactors


def _log_plain(k: NDArray, x: NDArray, d: NDArray) -> NDArray[np.float64]:
    """`log_bessel_ratio` with its factors as they stand, for d and x that are not large."""
    order = k + d / 2 - 1
    series = x * x / 4 <= 10 * (order + 1)
    near, far = np.where(series, x, 0.0), np.where(series, 1.0, x)
    small = _log_power(k, near, d / 2) + _log_series(order + 1, near**2 / 4) - near
    large = gammaln(d / 2) + (d / 2 - 1) * np.log(2 / far) + log_ive(order, far)
    return np.where(series, small, large)


def _log_power(k: NDArray, x: NDArray, a: NDArray) -> NDArray[np.float64]:
    """log of (x/2)^k Gamma(a) / Gamma(a+k), in which k log k and k log x are not subtracted."""
    share = x / 2 / (a + k)
    log_share = np.where(share > 1e-290, np.log(share), np.log(x / 2) - np.log(a + k))
    power = k * log_share + k - (a - 0.5) * np.log1p(k / a)
    return np.where(k == 0, 0.0, power + _log_stirling(a) - _log_stirling(a + k))


def _log_stirling(a: NDArray) -> NDArray[np.float64]:
    """log Gamma(a) - (a - 1/2) log a + a - log(2 pi)/2: what Stirling's formula leaves out."""
    large = np.maximum(a, 20.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / large**2) / large**2) / large**2) / large
    near = np.minimum(a, 20.0)
    exact = gammaln(near) - (near - 0.5) * np.log(near) + near - np.log(2 * np.pi) / 2
    return np.where(a >= 20, series, exact)


def _log_series(b: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """log 0F1(; b; z) for 0 <= z <= 10 b: the power series, all terms positive."""
    total = np.zeros_like(z)
    for j in range(70, 0, -1):
        total = (1.0 + total) * z / (j * (b + j - 1))
    return np.log1p(total)


def _log_debye(order: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(I_order(x) e^(-x)) by the uniform expansion (DLMF 10.41.3), where order or x is large."""
    root = np.hypot(order, x)
    exponent = order * (order / (root + x)) - order * np.arcsinh(order / x)
    return exponent - (np.log(2 * np.pi) + np.log(root)) / 2 + np.log1p(_debye(order, root))


def _debye(order: NDArray[np.float64], root: NDArray[np.float64]) -> NDArray[np.float64]:
    """The terms of the uniform expansion after its first, with root = hypot(order, x)."""
    q = (order / root) ** 2
    u1 = (3 - 5 * q) / 24
    u2 = (81 - 462 * q + 385 * q**2) / 1152
    u3 = (30375 - 369603 * q + 765765 * q**2 - 425425 * q**3) / 414720
    u4 = (
        4465125 - 94121676 * q + 349922430 * q**2 - 446185740 * q**3 + 185910725 * q**4
    ) / 39813120
    return (u1 + (u2 + (u3 + u4 / root) / root) / root) / root

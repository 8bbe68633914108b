"""Roots of many scalar equations at once, each inside its own bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def bracketed_root(
    f: Function, low: ArrayLike, high: ArrayLike, iterations: int = 120
) -> NDArray[np.float64]:
    """Root of an increasing f in [low, high] by Chandrupatla's method (Adv. Eng. Software 28,
    1997).

    Inverse quadratic interpolation where it is safe, bisection elsewhere (also where f is
    infinite). Where f does not change sign the nearer end of the bracket comes back.
    """
    low, high = (np.array(end, dtype=np.float64) for end in np.broadcast_arrays(low, high))
    f_low, f_high = f(low), f(high)
    x1, f1, x2, f2 = high, f_high, low, f_low
    step = np.full(low.shape, 0.5)
    for _ in range(iterations):
        x = x1 + step * (x2 - x1)
        fx = f(x)
        same = np.sign(fx) == np.sign(f1)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, fx
        width = np.abs(x2 - x1)
        tolerance = 2e-16 * np.abs(x1) + 1e-300
        if np.all((width <= 2 * tolerance) | (f1 == 0)):
            break
        step = _next_step(
            x1, f1, x2, f2, x3, f3, np.minimum(0.5, tolerance / np.maximum(width, 1e-300))
        )
    root = np.where(np.abs(f1) <= np.abs(f2), x1, x2)
    return np.where(f_low >= 0, low, np.where(f_high <= 0, high, root))


def _next_step(x1, f1, x2, f2, x3, f3, least):
    """The fraction of the way from x1 to x2 at which to look next."""
    with np.errstate(all="ignore"):
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        inverse = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (
            f3 - f2
        )
    return np.clip(np.where(safe & np.isfinite(inverse), inverse, 0.5), least, 1 - least)

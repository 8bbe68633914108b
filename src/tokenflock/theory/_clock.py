"""The natural clock y = log(v/u) of equiangular tokens, with u = 1 - gamma and v = gamma + 1/(n-1).

In y the ODEs of arXiv 2312.10794, Theorem 6.8, read dy/dt = 2n / (n - 1 + e^(beta u)) (SA) and
dy/dt = 2 e^(beta gamma) (USA).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ._check import real, refuse
from ._roots import bracketed_root
from ._special import scaled_expi

Array = NDArray[np.float64]
Number = Array | float

_EDGE = 700.0  # |y| beyond which gamma is one of its end points in double precision


def clock(argument: str, gamma: ArrayLike, n: Array, ends: bool = False) -> Array:
    """y at the cosine gamma, which must be one that n equiangular unit vectors can have."""
    gamma = real(argument, gamma, "0.0")
    least = -1 / (n - 1)
    if (np.where(ends, (gamma < least) | (gamma > 1), (gamma <= least) | (gamma >= 1))).any():
        refuse(
            argument,
            f"between -1/(n-1) = {np.max(least):.4g} and 1 (n equiangular tokens)",
            gamma,
            "0.0",
        )
    with np.errstate(divide="ignore"):
        return np.log(gamma - least) - np.log1p(-gamma)


def gap(y: Number, n: Number) -> Array:
    """u = 1 - gamma."""
    return n / (n - 1) * expit(-y)


def excess(y: Number, n: Number) -> Array:
    """v = gamma + 1/(n-1)."""
    return n / (n - 1) * expit(y)


def cosine(y: Number, n: Number) -> Array:
    """gamma, which is 1 to the last digit at the end."""
    return (n * expit(y) - 1) / (n - 1)


def elapsed(y0: Number, y1: Number, n: Number, beta: Number, unnormalised: bool) -> Array:
    """Time from y0 to y1: the closed form of `equiangular_time`."""
    free = np.abs(beta) < 1e-18
    beta = np.where(free, 1.0, beta)
    height0, level0 = _primitive(y0, n, beta)
    height1, level1 = _primitive(y1, n, beta)
    top = np.maximum(height0, height1)
    with np.errstate(over="ignore", divide="ignore"):
        difference = np.exp(height0 - top) * level0 - np.exp(height1 - top) * level1
        log_scale = top + np.log(np.abs(difference)) - (beta if unnormalised else 0.0)
        integral = np.sign(difference) * np.exp(log_scale)
    if unnormalised:
        return np.where(free, (y1 - y0) / 2, integral / 2)[()]
    return np.where(free, (y1 - y0) / 2, ((n - 1) * (y1 - y0) + integral) / (2 * n))[()]


def _primitive(y: Number, n: Number, beta: Number) -> tuple[Array, Array]:
    """(h, g) with e^h g = Ei(beta u) + e^(beta n/(n-1)) E1(beta v): minus a primitive of e^(beta u)
    dy.
    """
    u, v = gap(y, n), excess(y, n)
    return beta * u, scaled_expi(beta * u) - scaled_expi(-beta * v)


def clock_at(t: Array, y0: Number, n: Number, beta: Number, unnormalised: bool) -> Array:
    """y after time t: the root of elapsed(y0, y) = t."""
    shape = np.broadcast_shapes(*map(np.shape, (t, y0, n, beta)))
    return bracketed_root(
        lambda y: elapsed(y0, y, n, beta, unnormalised) - t,
        np.full(shape, -_EDGE),
        np.full(shape, _EDGE),
    )

"""Two tokens (or two clusters) that hear the same noise: the diffusion of their cosine R.

One layer is x_i <- normalize(x_i + sqrt(h) W u_i), u_i what attention says to token i, W fresh with
entries of variance 1/d. To second order in sqrt(h), with s_i = |u_i|^2 and s_12 = <u_1, u_2>,

    drift    b(R) = (d - 2 + R^2) s_12 / d - (d - 1) R (s_1 + s_2) / (2 d)
    variance a(R) = (1 - R^2) (s_1 + s_2 - 2 R s_12) / d        in a unit of time h

so R is a diffusion on [-1, 1], and what it does follows from its scale function and speed measure.
Derived here. Masses m and 1 - m: a cluster is a heavy token.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import cumulative_simpson, simpson
from scipy.linalg import expm

_Z = np.linspace(-12.0, 12.0, 12001)  # R = tanh z


def heard(R: Any, beta: float, m: float = 0.5) -> tuple[Any, Any, Any]:
    """(s_1, s_2, s_12) of softmax attention between masses m and 1 - m."""
    far = np.exp(beta * (R - 1))
    p, q = m / (m + (1 - m) * far), (1 - m) / (1 - m + m * far)
    s1 = p**2 + (1 - p) ** 2 + 2 * p * (1 - p) * R
    s2 = q**2 + (1 - q) ** 2 + 2 * q * (1 - q) * R
    return s1, s2, p * (1 - q) + q * (1 - p) + (p * q + (1 - p) * (1 - q)) * R


def drift(R: Any, beta: float, d: int, m: float = 0.5) -> Any:
    """b(R)."""
    s1, s2, s12 = heard(R, beta, m)
    return (d - 2 + R**2) * s12 / d - (d - 1) * R * (s1 + s2) / (2 * d)


def variance(R: Any, beta: float, d: int, m: float = 0.5) -> Any:
    """a(R)."""
    s1, s2, s12 = heard(R, beta, m)
    return (1 - R**2) * (s1 + s2 - 2 * R * s12) / d


def consensus_exponent(d: int) -> float:
    """Rate of log(1 - R) as R -> 1: -(d-1)/d, for every beta and all masses."""
    return -(d - 1) / d


def antipodal_exponent(beta: Any, d: int) -> Any:
    """Rate of log(1 + R) as R -> -1, equal masses: ((d-1) / cosh^2(beta) - 2) / d."""
    return ((d - 1) / np.cosh(beta) ** 2 - 2) / d


def critical_beta(d: int) -> float:
    """Beyond it opposite places attract two equal masses: cosh^2(beta) = (d-1)/2."""
    return float(np.arccosh(np.sqrt(max((d - 1) / 2, 1.0))))


def _tables(beta: float, d: int, m: float) -> tuple[Any, Any, Any]:
    """(R, dS/dz, a) on the grid of z, S the scale function."""
    R, inside = np.tanh(_Z), 1 / np.cosh(_Z) ** 2
    a = variance(R, beta, d, m)
    steep = 2 * drift(R, beta, d, m) / a * inside
    G = cumulative_simpson(steep, x=_Z, initial=0)
    return R, np.exp(-(G - G[len(G) // 2])) * inside, a


def antipodal_share(beta: float, d: int) -> float:
    """Probability that two uniform tokens end opposite: 0 up to the critical beta."""
    if antipodal_exponent(beta, d) >= 0:
        return 0.0
    _, slope, _ = _tables(beta, d, 0.5)
    # beyond the grid the scale function is an exponential of z, and much of it lies there where an
    # exponent is small
    before, after = (
        slope[end] * (_Z[1] - _Z[0]) / np.log(slope[inner] / slope[end])
        for end, inner in ((0, 1), (-1, -2))
    )
    S = before + cumulative_simpson(slope, x=_Z, initial=0)
    start = np.cosh(_Z) ** -(d - 1.0)  # uniform tokens: (1 - R^2)^((d-3)/2) dR
    ends = 1 - S / (S[-1] + after)
    return float(simpson(ends * start, x=_Z) / simpson(start, x=_Z))


def share_below(beta: float, d: int, t: float, level: float = 0.0) -> float:
    """Probability that two uniform tokens have R < level at time t."""
    z, below = _below(beta, d, t, 0.5, level)
    start = np.cosh(z) ** -(d - 1.0)
    return float(below @ start / start.sum())


def share_staying(beta: float, d: int, t: float, m: float, level: float) -> float:
    """Probability that masses m and 1 - m that begin opposite have R < level at time t.

    No other start makes it larger: paths of one diffusion on a line do not cross.
    """
    return float(_below(beta, d, t, m, level)[1][0])


@cache
def _below(
    beta: float, d: int, t: float, m: float, level: float, points: int = 301
) -> tuple[Any, Any]:
    """(z, the probability of R < level at time t for a start at tanh z): the backward equation."""
    z = np.linspace(-9, 9, points)
    R, inside, step = np.tanh(z), 1 / np.cosh(z) ** 2, z[1] - z[0]
    spread = variance(R, beta, d, m) / inside**2
    push = drift(R, beta, d, m) / inside + spread * R
    up, down = (
        spread / (2 * step**2) + push / (2 * step),
        spread / (2 * step**2) - push / (2 * step),
    )
    L = np.diag(up[:-1], 1) + np.diag(down[1:], -1)
    L -= np.diag(L.sum(axis=1))
    # the node at which the level lies counts in part, as much of its cell is below
    share = np.clip((np.arctanh(level) - z) / step + 0.5, 0, 1)
    return z, expm(t * L) @ share


def leaving_time(beta: float, d: int, m: float, h: float = 0.0) -> float:
    """Mean time in which unequal masses that begin opposite reach R = 0.

    Seen only at layers of step h, the level is passed as one that lies 0.5826 sqrt(a h) further
    (Broadie, Glasserman and Kou 1997).
    """
    _, slope, a = _tables(beta, d, m)
    inside = 1 / np.cosh(_Z) ** 2
    speed = cumulative_simpson(inside**2 / (a * slope), x=_Z, initial=0)
    level = np.arctanh(0.5826 * np.sqrt(h * float(variance(np.float64(0.0), beta, d, m))))
    until = int(np.searchsorted(_Z, level)) + 1
    return float(2 * simpson((slope * speed)[:until], x=_Z[:until]))


def gap_of_clusters(beta: float, m: float) -> float:
    """(c_1 - c_2)^2, c = tanh(beta +- log(m / (1-m)) / 2): how differently two opposite clusters
    hear the noise.
    """
    tilt = np.log(m / (1 - m)) / 2
    return float((np.tanh(beta + tilt) - np.tanh(beta - tilt)) ** 2)

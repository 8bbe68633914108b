"""Gaussian tokens in R^d under attention without projection: they stay Gaussian, may blow up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from ._check import Numbers, above, at_least, finite, refuse


class Moments(NamedTuple):
    """Mean and covariance of a Gaussian law, or their speeds."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


def gaussian_variance(
    t: ArrayLike = 0.1, variance: ArrayLike = 1.0, v: ArrayLike = 1.0, a: ArrayLike = 1.0
) -> Numbers:
    """Variance of Gaussian tokens on the line at time t; nan after the blow-up.

        dS/dt = 2 v a S^2,   S(t) = S0 / (1 - 2 v a S0 t)

    Letters: S the variance, v the value, a = beta q k the attention form of dx/dt = v (m + S a x).

    Source: arXiv 2501.18322 (Gaussian data), in d = 1.

    >>> from tokenflock.theory import gaussian_variance
    >>> print(gaussian_variance([0.0, 0.25, 1.0], variance=1.0))
    [ 1.  2. nan]
    """
    t, variance = finite("t", t), above("variance", finite("variance", variance), 0, "1.0")
    left = 1 - 2 * finite("v", v) * finite("a", a) * variance * t
    return (variance / np.where(left > 0, left, np.nan))[()]


def gaussian_mean(
    t: ArrayLike = 0.1,
    mean: ArrayLike = 1.0,
    variance: ArrayLike = 1.0,
    v: ArrayLike = 1.0,
    a: ArrayLike = 1.0,
) -> Numbers:
    """Mean of Gaussian tokens on the line at time t; nan after the blow-up.

        dm/dt = v (1 + a S) m,   m(t) = m0 e^(v t) / sqrt(1 - 2 v a S0 t)

    Letters: as in `gaussian_variance`, m the mean.

    Source: arXiv 2501.18322 (Gaussian data), in d = 1.

    >>> from tokenflock.theory import gaussian_mean
    >>> print(f"{gaussian_mean(0.25, 1.0):.8f}")
    1.81588616
    """
    t, mean, v = finite("t", t), finite("mean", mean), finite("v", v)
    growth = gaussian_variance(t, variance, v, a) / np.asarray(variance, dtype=np.float64)
    return (mean * np.exp(v * t) * np.sqrt(growth))[()]


def gaussian_blow_up(variance: ArrayLike = 1.0, v: ArrayLike = 1.0, a: ArrayLike = 1.0) -> Numbers:
    """Time at which the variance of Gaussian tokens on the line becomes infinite; inf where it
    never does.

        t = 1 / (2 v a S0)   for v a > 0

    Source: arXiv 2501.18322 (Gaussian data), in d = 1.

    >>> from tokenflock.theory import gaussian_blow_up
    >>> print(gaussian_blow_up(1.0), gaussian_blow_up(1.0, v=-1.0))
    0.5 inf
    """
    rate = (
        2
        * finite("v", v)
        * finite("a", a)
        * above("variance", finite("variance", variance), 0, "1.0")
    )
    return np.where(rate > 0, 1 / np.where(rate > 0, rate, 1.0), np.inf)[()]


def gaussian_speed(
    mean: ArrayLike = (1.0,),
    covariance: ArrayLike = ((1.0,),),
    A: ArrayLike = ((1.0,),),
    V: ArrayLike = ((1.0,),),
) -> Moments:
    """Speed of the mean and covariance of Gaussian tokens in R^d under attention.

        dm/dt = V (I + S A^T) m,   dS/dt = V S A^T S + S A S V^T

    Letters: A = beta Q^T K, V the value matrix; the field is x -> V (m + S A^T x).

    Source: arXiv 2501.18322 (Gaussian data).

    >>> from tokenflock.theory import gaussian_speed
    >>> print(gaussian_speed([1.0], [[2.0]], [[1.0]], [[1.0]]).covariance)
    [[8.]]
    """
    m, S, A, V = (
        finite(name, x, "np.eye(2)")
        for name, x in (("mean", mean), ("covariance", covariance), ("A", A), ("V", V))
    )
    _fit(m, {"covariance": S, "A": A, "V": V})
    _covariances(S)
    return _speed(m, S, A, V)


def _speed(m: NDArray, S: NDArray, A: NDArray, V: NDArray) -> Moments:
    field = V @ S @ np.swapaxes(A, -1, -2)
    half = field @ S
    mean_speed = np.einsum("...ab,...b->...a", V + field, m)
    return Moments(mean_speed, half + np.swapaxes(half, -1, -2))


def _covariances(S: NDArray) -> None:
    """Raise unless matrices are symmetric and have no negative eigenvalue, to rounding."""
    size = np.abs(S).max(axis=(-2, -1), initial=0.0, keepdims=True)
    even = bool((np.abs(S - np.swapaxes(S, -1, -2)) <= 1e-9 * size).all())
    if not (even and (np.linalg.eigvalsh(S) >= -1e-9 * size[..., 0]).all()):
        wanted = "symmetric, without negative eigenvalues"
        refuse("covariance", wanted, S, "np.eye(2)")


def _fit(mean: NDArray, matrices: dict[str, NDArray], several: bool = True) -> int:
    """The dimension, or an error that names the first which is not of it; `several` at a time?"""
    d = mean.shape[-1] if mean.ndim else 0
    if d == 0 or not (several or mean.ndim == 1):
        refuse("mean", "a vector of d numbers", mean.tolist(), "[1.0, 0.0]")
    for name, x in matrices.items():
        if x.shape[-2:] != (d, d) or not (several or x.ndim == 2):
            wanted = f"of shape {(d, d)}, since the mean has {d} numbers"
            refuse(name, wanted, x.shape, f"np.eye({d})")
    return d


def gaussian_flow(
    t: ArrayLike = 0.1,
    mean: ArrayLike = (1.0,),
    covariance: ArrayLike = ((1.0,),),
    A: ArrayLike = ((1.0,),),
    V: ArrayLike = ((1.0,),),
) -> Moments:
    """Mean and covariance of Gaussian tokens in R^d at the times t; nan after the blow-up.

        the solution of `gaussian_speed`;   V = I:  S(t)^-1 = S(0)^-1 - t (A + A^T)

    Letters: t one time or several (t >= 0); mean of shape (d,), covariance, A and V (d, d). By an
    ODE solver at 1e-11.

    Source: arXiv 2501.18322 (Gaussian data).

    >>> from tokenflock.theory import gaussian_flow
    >>> print(gaussian_flow(0.25, [1.0], [[1.0]], [[1.0]], [[1.0]]).covariance.round(8))
    [[2.]]
    """
    t = at_least("t", finite("t", t), 0, "0.1")
    if t.size == 0:
        refuse("t", "one time or several", t.tolist(), "0.1")
    m, S = finite("mean", mean), finite("covariance", covariance)
    form, value = finite("A", A), finite("V", V)
    d = _fit(m, {"covariance": S, "A": form, "V": value}, several=False)
    _covariances(S)

    def speed(_: float, state: NDArray) -> NDArray:
        moments = _speed(state[:d], state[d:].reshape(d, d), form, value)
        return np.concatenate([moments.mean, moments.covariance.ravel()])

    def huge(_: float, state: NDArray) -> float:
        return 1e12 * (np.abs(S).max() or 1.0) - np.abs(state[d:]).max()

    huge.terminal = True
    times, back = np.unique(t, return_inverse=True)
    start = np.concatenate([m, S.ravel()])
    path = np.full((times.size, start.size), np.nan)
    solution = solve_ivp(
        speed,
        (0.0, max(times[-1], 1e-300)),
        start,
        "DOP853",
        t_eval=times,
        events=huge,
        rtol=1e-11,
        atol=1e-13 * np.repeat([np.abs(m).max() or 1.0, np.abs(S).max() or 1.0], [d, d * d]),
    )
    reached = np.reshape(solution.y, (start.size, -1))  # no time at all, if it blows up before
    path[: reached.shape[1]] = reached.T
    path = path[back.reshape(t.shape)]
    return Moments(path[..., :d], path[..., d:].reshape(*t.shape, d, d))

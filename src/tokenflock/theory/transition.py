"""The curve of the phase diagram: where high-dimensional tokens become one cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import Numbers, above, between, finite, whole
from ._clock import clock, elapsed
from ._roots import bracketed_root


def crossing_time(
    beta: ArrayLike = 1.0,
    n: ArrayLike = 32,
    delta: ArrayLike = 1e-3,
    gamma0: ArrayLike = 0.0,
    unnormalised: bool = False,
) -> Numbers:
    """Time at which n orthogonal tokens come within delta of consensus.

        t*(beta): gamma_beta(t*) = 1 - delta;
        gamma0 = 0: t*(0) = (1/2) log( ((n-1)(1-delta) + 1) / delta )

    Letters: delta the threshold (1e-3 in the figures), gamma0 the common cosine at time 0.

    Source: arXiv 2312.10794, (6.9), (6.10) and (6.12).

    >>> from tokenflock.theory import crossing_time
    >>> print(crossing_time([0, 4, 9], n=32, delta=1e-3).round(8))
    [  5.18626098   6.95350185 178.73092952]
    """
    n, beta, delta = (
        whole("n", n, 2, "32"),
        finite("beta", beta),
        between("delta", delta, 0, 1, "1e-3"),
    )
    y1 = np.log(n / (n - 1) - delta) - np.log(delta)
    return elapsed(clock("gamma0", gamma0, n), y1, n, beta, unnormalised)


def transition_curve(
    t: ArrayLike = 30.0,
    n: ArrayLike = 32,
    delta: ArrayLike = 1e-3,
    gamma0: ArrayLike = 0.0,
    unnormalised: bool = False,
) -> Numbers:
    """The beta on the curve Gamma_(infinity, delta) at time t, below which tokens have clustered.

        Gamma_(infinity, delta) = { (t, beta) : gamma_beta(t) = 1 - delta }

    nan where the curve does not reach beta >= 0 (SA: t earlier than the crossing at beta = 0; USA:
    later than it).

    Source: arXiv 2312.10794, (6.12) and Figure 3. The black curve printed there was placed by hand
    and passes near (30, 6.45); for n = 32, delta = 1e-3 the equation gives (30, 6.906).

    >>> from tokenflock.theory import transition_curve
    >>> print(transition_curve([5, 10, 20, 30], n=32, delta=1e-3).round(6))
    [     nan 5.109904 6.34474  6.906459]
    """
    t, n, delta = (
        above("t", finite("t", t), 0, "30.0"),
        whole("n", n, 2, "32"),
        between("delta", delta, 0, 1, "1e-3"),
    )
    t, n, delta, gamma0 = np.broadcast_arrays(t, n, delta, finite("gamma0", gamma0, "0.0"))
    # normalised attention slows down with beta, unnormalised speeds up
    direction = -1.0 if unnormalised else 1.0

    def lateness(beta: NDArray) -> NDArray:
        with np.errstate(divide="ignore"):
            return direction * np.log(crossing_time(beta, n, delta, gamma0, unnormalised) / t)

    high = np.ones(t.shape)
    while np.any(late := lateness(high) < 0):
        high = np.where(late, 2 * high, high)
    root = bracketed_root(lateness, np.zeros(t.shape), high)
    return np.where(lateness(np.zeros(t.shape)) > 0, np.nan, root)[()]

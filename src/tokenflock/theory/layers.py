"""Equiangular tokens through the layers x <- normalize(x + h A x): the recursion of one cosine."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import Numbers, above, between, finite, refuse, whole
from ._clock import clock
from ._family import layer
from ._roots import bracketed_root

MOST = 1_000_000  # layers that are applied one by one


def layer_cosines(
    steps: ArrayLike = 10,
    n: ArrayLike = 32,
    beta: ArrayLike = 1.0,
    h: ArrayLike = 0.1,
    gamma0: ArrayLike = 0.0,
) -> Numbers:
    """Common cosine of n equiangular tokens after a number of Transformer layers.

        1 - gamma' = (1 - gamma) (a-c)^2 / (a^2 + 2 a c (n-1) gamma + c^2 (n-1) (1 + (n-2) gamma)),
        a = 1 + h e^beta / Z,   c = h e^(beta gamma) / Z,   Z = e^beta + (n-1) e^(beta gamma)

    exact for x <- normalize(x + h A x), the scheme behind the published figures (h = 0.1). Letters:
    h step of a layer, steps number of layers, gamma0 the cosine that enters.

    Source: the layer map of arXiv 2312.10794, Section 2 (and its figure code), on the family of
    Theorem 6.8.

    >>> from tokenflock.theory import layer_cosines
    >>> print(layer_cosines([50, 80], n=32, beta=4.0))
    [0.9067247  0.99965806]
    """
    steps = whole("steps", steps, 0, "10", np.inf)
    return (1 - _layer_gaps(steps, n, beta, h, gamma0))[()]


def layer_crossing(
    beta: ArrayLike = 1.0,
    n: ArrayLike = 32,
    delta: ArrayLike = 1e-3,
    h: ArrayLike = 0.1,
    gamma0: ArrayLike = 0.0,
    most: int = 20_000,
) -> Numbers:
    """Number of layers after which n orthogonal tokens are within delta of consensus.

        K = min { k : gamma_k >= 1 - delta },   crossing time K h

    inf where more than `most` layers are needed.

    Source: the recursion of `layer_cosines`; it gives the front of arXiv 2312.10794, Figure 3 at
    large d.

    >>> from tokenflock.theory import layer_crossing
    >>> print(layer_crossing([0, 4, 6], n=32))
    [ 55.  75. 175.]
    """
    if np.ndim(most):
        refuse("most", "one number", most, "20000")
    most = int(whole("most", most, 0, "20000", np.inf))
    if most > MOST:
        refuse("most", f"at most {MOST:,} layers", most, "20000")
    u, n, beta, h = _start(n, beta, h, gamma0)
    u, delta = np.broadcast_arrays(u, between("delta", delta, 0, 1, "1e-3"))
    count = np.where(u <= delta, 0.0, np.inf)
    for step in range(1, most + 1):
        u = _one_layer(u, n, beta, h)
        count = np.where(np.isinf(count) & (u <= delta), float(step), count)
        if np.isfinite(count).all():
            break
    return count[()]


def layer_transition_curve(
    t: ArrayLike = 30.0,
    n: ArrayLike = 32,
    delta: ArrayLike = 1e-3,
    h: ArrayLike = 0.1,
    gamma0: ArrayLike = 0.0,
) -> Numbers:
    """The beta at which n orthogonal tokens come within delta of consensus exactly at layer t / h.

        gamma_K(beta) = 1 - delta,   K = floor(t / h)

    the discrete twin of `transition_curve`, and the front to expect in a phase diagram made with
    layers; nan where K layers are too few even at beta = 0.

    Source: the recursion of `layer_cosines`; arXiv 2312.10794, Figure 3 (h = 0.1).

    >>> from tokenflock.theory import layer_transition_curve
    >>> print(f"{layer_transition_curve(30.0, n=32):.2f}")
    6.78
    """
    t, n, delta = (
        above("t", finite("t", t), 0, "30.0"),
        whole("n", n, 2, "32"),
        between("delta", delta, 0, 1, "1e-3"),
    )
    h = above("h", finite("h", h), 0, "0.1")
    t, n, delta, h, gamma0 = np.broadcast_arrays(t, n, delta, h, finite("gamma0", gamma0, "0.0"))
    steps = np.floor(t / h + 1e-9)
    most = MOST // 50  # the recursion runs once for each guess of beta
    if steps.max(initial=0) > most:
        at = np.unravel_index(np.argmax(steps), steps.shape)
        wanted = f"at most {most:,} layers of h = {h[at]:g}"
        refuse("t", wanted, t[at], f"{most * h[at]:g}", f", which is {steps[at]:,.0f}")

    def lateness(beta: NDArray) -> NDArray:
        return np.log(_layer_gaps(steps, n, beta, h, gamma0) / delta)

    high, late = np.ones(t.shape), lateness(np.zeros(t.shape)) > 0
    while np.any(early := ~late & (lateness(high) < 0)):
        high = np.where(early, 2 * high, high)
    return np.where(late, np.nan, bracketed_root(lateness, np.zeros(t.shape), high))[()]


def _layer_gaps(
    steps: NDArray, n: ArrayLike, beta: ArrayLike, h: ArrayLike, gamma0: ArrayLike
) -> NDArray:
    """1 - gamma after each number of steps, all arguments broadcast."""
    u, n, beta, h = _start(n, beta, h, gamma0)
    steps, u = np.broadcast_arrays(steps, u)
    result = u
    if steps.max(initial=0) > MOST:
        refuse("steps", f"at most {MOST:,} layers (t / h)", float(steps.max()), "1000")
    for step in range(1, int(steps.max(initial=0)) + 1):
        u = _one_layer(u, n, beta, h)
        result = np.where(step <= steps, u, result)
    return result


def _start(n: ArrayLike, beta: ArrayLike, h: ArrayLike, gamma0: ArrayLike) -> tuple[NDArray, ...]:
    n, beta, h = whole("n", n, 2, "32"), finite("beta", beta), above("h", finite("h", h), 0, "0.1")
    clock("gamma0", gamma0, n)  # refuses cosines that no equiangular family has
    return np.broadcast_arrays(1 - np.asarray(gamma0, dtype=np.float64), n, beta, h)


def _one_layer(u: NDArray, n: NDArray, beta: NDArray, h: NDArray) -> NDArray:
    with np.errstate(over="ignore"):
        return layer(u, n, beta, h)

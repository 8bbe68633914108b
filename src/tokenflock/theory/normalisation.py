"""Where the layer norm sits: the equiangular ODE for Post-LN, Pre-LN, Mix-LN, Peri-LN, nGPT and
sqrt scaling.

A token is r theta with |theta| = 1. Every scheme moves the cosine rho of the directions along the
same curve; they differ in the speed 1/s and in what the radius r does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from ._check import Numbers, above, at_least, choice, finite, whole
from ._check import cosine as held
from ._clock import Array, Number, clock, clock_at, cosine, gap
from .equiangular import equiangular_speed

_SCHEMES = ("post", "pre", "mix", "peri", "ngpt", "sqrt")


class Normalised(NamedTuple):
    """The common cosine of the directions and the common radius."""

    rho: Numbers
    r: Numbers


def normalised_speed(
    rho: ArrayLike = 0.0,
    n: ArrayLike = 256,
    beta: ArrayLike = 1.0,
    scheme: str = "post",
    r: ArrayLike = 1.0,
    t: ArrayLike = 0.0,
    alpha: ArrayLike = 1.0,
    switch: ArrayLike = 0.0,
) -> Normalised:
    """Speed of the cosine and of the radius of n equiangular tokens under a normalisation scheme.

        drho/dt = (1/s) 2 e^(beta rho) (1-rho) ((n-1) rho + 1) / Z,
        Z = e^beta + (n-1) e^(beta rho)
        scheme   post  pre          mix (t <= switch, then)  peri           ngpt       sqrt
        s        1     r            1, r                     r |A|          |A|/alpha  sqrt(t+1)
        dr/dt    0     <theta, A>   0, <theta, A>            <theta, A>/|A| 0          0

    Letters: A the attention output, rho the cosine (from -1/(n-1) to 1), r the radius, t the depth,
    alpha the step of nGPT, switch the time at which Mix-LN goes from post to pre.

    Source: arXiv 2510.22026; arXiv 2512.01868.

    >>> from tokenflock.theory import normalised_speed
    >>> print("{:.8f} {:.8f}".format(*normalised_speed(0.0, 256, 5.0, "pre")))
    0.00495770 0.36789370
    """
    scheme = choice("scheme", scheme, _SCHEMES)
    n, beta = whole("n", n, 2, "256"), finite("beta", beta)
    rho = held("rho", rho, n)
    t, switch = at_least("t", t, 0, "0.0"), at_least("switch", switch, 0, "0.0")
    r, alpha = above("r", r, 0, "1.0"), above("alpha", alpha, 0, "1.0")
    free = np.asarray(equiangular_speed(rho, n, beta))
    along, length = _output(rho, n, beta)
    slowness, radial = _slowness(scheme, r, t, along, length, alpha, switch)
    rho, radial, _ = np.broadcast_arrays(free / slowness, radial, r)
    return Normalised(rho.copy()[()], radial.copy()[()])


def initial_speed(
    n: ArrayLike = 256,
    beta: ArrayLike = 1.0,
    scheme: str = "post",
    r0: ArrayLike = 1.0,
    alpha: ArrayLike = 1.0,
) -> Numbers:
    """Speed of the cosine of n orthogonal tokens at depth 0 under a normalisation scheme.

        post, mix, sqrt  2/(e^beta + n - 1)            pre   2/(r0 (e^beta + n - 1))
        peri             2/(r0 sqrt(e^(2 beta) + n-1)) ngpt  2 alpha/sqrt(e^(2 beta) + n - 1)

    Letters: r0 the initial radius, alpha the step of nGPT.

    Source: arXiv 2510.22026.

    >>> from tokenflock.theory import initial_speed
    >>> print(f"{initial_speed(256, 5.0, 'peri'):.8f}")
    0.01339856
    """
    choice("scheme", scheme, _SCHEMES)
    n, beta = whole("n", n, 2, "256"), finite("beta", beta)
    r0, alpha = above("r0", r0, 0, "1.0"), above("alpha", alpha, 0, "1.0")
    if scheme in ("peri", "ngpt"):
        speed = 2 * np.exp(-beta) / np.sqrt(1 + (n - 1) * np.exp(-2 * beta))
    else:
        speed = 2 * np.exp(-beta) / (1 + (n - 1) * np.exp(-beta))
    return (
        speed * (alpha if scheme == "ngpt" else 1.0) / (r0 if scheme in ("pre", "peri") else 1.0)
    )[()]


def normalised_flow(
    t: ArrayLike = 1.0,
    n: ArrayLike = 256,
    beta: ArrayLike = 1.0,
    scheme: str = "post",
    r0: ArrayLike = 1.0,
    rho0: ArrayLike = 0.0,
    alpha: ArrayLike = 1.0,
    switch: ArrayLike = 0.0,
) -> Normalised:
    """Cosine and radius of n equiangular tokens at depth t under a normalisation scheme.

        (rho, r)(t): the solution of `normalised_speed` from (rho0, r0)

    Letters: t the depth, r0 the initial radius, rho0 the initial cosine, alpha the step of nGPT. In
    closed form for post (`equiangular_cosine`) and sqrt (the same at time 2 sqrt(t+1) - 2), by an
    ODE solver at 1e-12 for the others. Near consensus 1 - rho ~ e^(-2t) for post, t^-2 for pre, mix
    and peri, e^(-4 sqrt t) for sqrt.

    Source: arXiv 2510.22026.

    >>> from tokenflock.theory import normalised_flow
    >>> print(normalised_flow([1, 5, 10], 256, 5.0, "pre").rho.round(8))
    [0.00762298 0.15379101 0.68860337]
    """
    scheme = choice("scheme", scheme, _SCHEMES)
    t, n, beta = (
        at_least("t", finite("t", t), 0, "1.0"),
        whole("n", n, 2, "256"),
        finite("beta", beta),
    )
    r0, alpha = above("r0", r0, 0, "1.0"), above("alpha", alpha, 0, "1.0")
    y0, switch = clock("rho0", rho0, n), at_least("switch", switch, 0, "0.0")
    if scheme in ("post", "sqrt"):
        depth = t if scheme == "post" else 2 * np.sqrt(t + 1) - 2
        rho, r = np.broadcast_arrays(cosine(clock_at(depth, y0, n, beta, False), n), r0)
        return Normalised(rho.copy()[()], r.copy()[()])
    t, *parameters = np.broadcast_arrays(t, n, beta, r0, y0, alpha, switch)
    rows, group = np.unique(
        np.stack([p.ravel() for p in parameters], -1), axis=0, return_inverse=True
    )
    rho, r = np.empty((2, t.size))
    for index, row in enumerate(rows):
        here = group.ravel() == index
        rho[here], r[here] = _solve(scheme, t.ravel()[here], *row)
    return Normalised(rho.reshape(t.shape)[()], r.reshape(t.shape)[()])


def _output(rho: Number, n: Number, beta: Number) -> tuple[Array, Array]:
    """(<theta, A>, |A|) of the attention output A of each of n equiangular tokens."""
    with np.errstate(over="ignore"):
        other = 1 / (n - 1 + np.exp(beta * (1 - rho)))
        own = 1 / (1 + (n - 1) * np.exp(beta * (rho - 1)))
    square = own**2 + 2 * (n - 1) * rho * own * other + other**2 * (n - 1) * (1 + (n - 2) * rho)
    return own + (n - 1) * rho * other, np.sqrt(square)


def _slowness(
    scheme: str,
    r: Number,
    t: Number,
    along: Number,
    length: Number,
    alpha: Number,
    switch: Number,
) -> tuple[Number, Number]:
    """(s, dr/dt) of the table in `normalised_speed`."""
    later = t > switch
    table = {
        "post": lambda: (1.0, 0.0),
        "pre": lambda: (r, along),
        "mix": lambda: (np.where(later, r, 1.0), np.where(later, along, 0.0)),
        "peri": lambda: (r * length, along / length),
        "ngpt": lambda: (length / alpha, 0.0),
        "sqrt": lambda: (np.sqrt(t + 1), 0.0),
    }
    return table[scheme]()


def _solve(
    scheme: str,
    t: NDArray,
    n: float,
    beta: float,
    r0: float,
    y0: float,
    alpha: float,
    switch: float,
) -> tuple[NDArray, NDArray]:
    """rho and r at the times t, for one set of parameters, integrated in the natural clock y =
    log(v/u).
    """
    delay = switch if scheme == "mix" else 0.0
    moving = "pre" if scheme == "mix" else scheme

    def speed(time: float, state: NDArray) -> list[Number]:
        y, r = state
        u, rho = gap(y, n), cosine(y, n)
        slowness, radial = _slowness(moving, r, time, *_output(rho, n, beta), alpha, 0.0)
        return [2 * n / (n - 1 + np.exp(min(beta * u, 700.0))) / slowness, radial]

    start = y0
    if delay:  # post-LN until the switch, in closed form
        start = clock_at(np.minimum(t, delay), y0, n, beta, False)
    y, r = np.broadcast_to(start, t.shape).copy(), np.full(t.shape, r0)
    later = t > delay
    if later.any():
        times, back = np.unique(t[later], return_inverse=True)
        initial = [y[later][0], r0]
        solution = solve_ivp(
            speed,
            (delay, times[-1]),
            initial,
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-13,
        )
        if not solution.success:
            raise RuntimeError(
                f"the ODE of scheme={scheme!r} stalled: {solution.message} Ask for an earlier t."
            )
        y[later], r[later] = solution.y[:, back.ravel()]
    return cosine(y, n), r

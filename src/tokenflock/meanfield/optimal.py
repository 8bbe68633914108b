"""Measures of least or greatest energy for a symmetric matrix D, with a certificate."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr
from scipy.special import roots_legendre

from tokenflock import recipe as recipes
from tokenflock.errors import require
from tokenflock.frozen import choice
from tokenflock.meanfield.certificate import optimality_gap
from tokenflock.meanfield.mirror_descent import descend
from tokenflock.meanfield.potential import Goal, Numbers, on_sphere, potential, symmetric
from tokenflock.meanfield.quasi_newton import Optimum, optimise

# names of axes, their coordinates, points (m, d), weights (m,)
Nodes = tuple[tuple[str, ...], dict[str, Numbers], Numbers, Numbers]


def optimal_tokens(
    D: Numbers,
    n: int = 400,
    goal: Goal = Goal.MINIMISE,
    *,
    start: Numbers | None = None,
    seed: int = 0,
    steps: int = 2000,
    tolerance: float = 1e-10,
) -> xr.Dataset:
    """n equal tokens of least or greatest energy, by a quasi-Newton method on the product of
    spheres.

        E = (1/n^2) sum_ij e^{<x_i, D x_j>}

    A local optimum, as the flow of `dynamics.Burger` finds one, but in tens of evaluations where
    explicit steps take thousands. Returns `x` (particle, coord), `w`, `energy`, `residual` (root
    mean square of n grad E), `gap` (see `optimality_gap`; n tokens that stand for a density keep a
    small one), and the `energies` and `seconds` of the evaluations on the way.

    start: tokens to begin with; uniform ones from `seed` unless given. Source: arXiv 2501.03096.

    >>> optimum = optimal_tokens(np.diag([1.0, 0.0, 1.0]), n=20)
    >>> # the poles of the kernel of D
    >>> round(float(optimum.energy), 6), bool(abs(optimum.x[:, 1]).min() > 0.99)
    (1.0, True)
    """
    D, goal = symmetric(D), choice(Goal, goal, "goal")
    if start is None:
        start = np.random.default_rng(seed).normal(size=(n, len(D)))
    start = on_sphere(np.asarray(start, dtype=np.float64))
    require(
        start.ndim == 2 and start.shape[1] == len(D),
        "start",
        f"tokens (n, {len(D)})",
        f"shape {start.shape}",
    )
    optimum = optimise(start, D, goal, steps, tolerance)
    options = {"D": D, "n": len(start), "goal": goal, "seed": seed}
    options |= {"steps": steps, "tolerance": tolerance}
    return xr.Dataset(_of_tokens(optimum, D, goal), attrs=_attrs("optimal_tokens", options))


def _of_tokens(optimum: Optimum, D: Numbers, goal: Goal) -> dict[str, tuple]:
    """The variables of tokens that are optimal."""
    x, w = optimum.x, np.full(len(optimum.x), 1 / len(optimum.x))
    clock = {"long_name": "wall-clock time of each evaluation", "units": "s"}
    return {
        "x": (("particle", "coord"), x, {"long_name": "tokens"}),
        "w": (("particle",), w, {"long_name": "weights"}),
        "energies": (("evaluation",), optimum.energies, {"long_name": "energy of each evaluation"}),
        "seconds": (("evaluation",), optimum.seconds, clock),
        "energy": ((), float(w @ potential(x, x, w, D)), {"long_name": "energy (burger)"}),
        "residual": ((), optimum.residual, {"long_name": "size of the gradient"}),
        "gap": ((), optimality_gap(x, D, goal), {"long_name": "optimality gap"}),
    }


def optimal_density(
    D: Numbers,
    goal: Goal = Goal.MINIMISE,
    *,
    points: int | None = None,
    seed: int = 0,
    steps: int = 5000,
    tolerance: float = 1e-12,
) -> xr.Dataset:
    """A density of least or greatest energy on a grid of the circle or of S^2, by mirror descent.

        log rho <- log rho -+ step V_rho + constant,   V_rho(x) = int e^{<x, D y>} drho(y)

    (exponentiated gradient): with implicit steps of growing length where the energy is convex,
    otherwise with explicit ones that are as long as the energy allows and momentum in log rho. It
    stops when the gap over the nodes is below the tolerance; where it is not after `steps` steps,
    or rounding lets it fall no further, `converged` is False and a warning says so. Where D >= 0
    the least energy is found for certain, and `gap` bounds what is missing.

    Returns `density` (theta) or (latitude, longitude) with respect to arc length or area, `weight`
    (mass is sum density weight), `nodes`, `energy`, `gap` over the whole sphere, `converged`, and
    the `energies` on the way. Source: arXiv 2501.03096.

    >>> optimum = optimal_density(np.eye(2), points=64)
    >>> round(float(optimum.energy), 8)  # the uniform measure: I_0(1)
    1.26606588
    """
    D, goal = symmetric(D), choice(Goal, goal, "goal")
    require(
        len(D) in (2, 3),
        "D",
        "2 by 2 (the circle) or 3 by 3 (S^2)",
        f"{len(D)} by {len(D)}",
        "use optimal_tokens",
    )
    nodes = _circle(points or 512) if len(D) == 2 else _sphere(points or 32)
    _, coords, x, g = nodes
    size = 0.0 if goal is Goal.MINIMISE else 0.1  # off the saddle
    tilt = size * np.random.default_rng(seed).normal(size=len(D))
    rho, energies = descend(x, g / g.sum(), D, goal, x @ tilt, steps, tolerance)
    missing = _missing(x, rho * g / g.sum(), D, goal)
    if missing >= tolerance:
        warnings.warn(
            f"optimal_density has not converged: after {len(energies)} steps the gap is"
            f" {missing:.2g}, not {tolerance:g}; raise the tolerance, or steps (now {steps})",
            RuntimeWarning,
            stacklevel=2,
        )
    variables = _of_density(nodes, rho, D, goal) | {
        "energies": (("evaluation",), energies, {"long_name": "energy of each step"}),
        "converged": ((), missing < tolerance, {"long_name": "gap over the nodes below tolerance"}),
    }
    options = {"D": D, "goal": goal, "points": points, "seed": seed}
    options |= {"steps": steps, "tolerance": tolerance}
    return xr.Dataset(variables, coords, _attrs("optimal_density", options))


def _missing(x: Numbers, w: Numbers, D: Numbers, goal: Goal) -> float:
    """By how much the mean potential misses the best one of the nodes."""
    V = goal.sign * potential(x, x, w, D)
    return float(w @ V - V.min())


def _of_density(nodes: Nodes, rho: Numbers, D: Numbers, goal: Goal) -> dict[str, tuple]:
    """The variables of a density that is optimal, with respect to arc length or area."""
    dims, coords, x, g = nodes
    shape = tuple(len(values) for values in coords.values())
    surface = 2 * np.pi if len(D) == 2 else 4 * np.pi
    w = rho * g / g.sum()
    weight = (g * surface / g.sum()).reshape(shape)
    return {
        "density": (dims, (rho / surface).reshape(shape), {"long_name": "density"}),
        "weight": (dims, weight, {"long_name": "quadrature weights"}),
        "nodes": ((*dims, "coord"), x.reshape(*shape, -1), {"long_name": "nodes"}),
        "energy": ((), float(w @ potential(x, x, w, D)), {"long_name": "energy (burger)"}),
        "gap": ((), optimality_gap(x, D, goal, w), {"long_name": "optimality gap"}),
    }


def _attrs(verb: str, options: dict) -> dict[str, str]:
    recipe = {"verb": verb, **options, "versions": recipes.versions("numpy", "scipy")}
    return {"title": f"tokenflock: {verb}", "recipe": recipes.dumps(recipe)}


def _circle(points: int) -> Nodes:
    """Equidistant angles: (names of axes, their coordinates, points, weights)."""
    theta = 2 * np.pi * np.arange(points) / points
    return (
        ("theta",),
        {"theta": theta},
        np.stack([np.cos(theta), np.sin(theta)], axis=1),
        np.ones(points),
    )


def _sphere(points: int) -> Nodes:
    """Gauss nodes in the height, twice as many equidistant longitudes: exact for polynomials of
    degree below 2 points.
    """
    u, g = roots_legendre(points)
    longitude = np.pi * np.arange(2 * points) / points
    c = np.sqrt(1 - u**2)
    ring = np.stack([np.cos(longitude), np.sin(longitude)], axis=1)
    flat = c[:, None, None] * ring
    x = np.concatenate([flat, np.broadcast_to(u[:, None, None], (*flat.shape[:2], 1))], axis=-1)
    coords = {"latitude": np.arccos(u), "longitude": longitude}
    return ("latitude", "longitude"), coords, x.reshape(-1, 3), np.repeat(g, 2 * points)

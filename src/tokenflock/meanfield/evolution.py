"""`evolve`: one measure, followed in time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.integrate import solve_ivp

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.memory import require_memory
from tokenflock.errors import (
    SimulationError,
    all_numbers,
    one_schedule,
    require,
    require_number,
    require_whole,
)
from tokenflock.meanfield.continuity import Modes, Tables, Values, check, slope, tables, velocity
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.functionals import functionals
from tokenflock.meanfield.grids import Grid, grid
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array, Time

LAST = 10.0  # the final time unless one is given
FRAMES = 101  # how many times are kept unless they are given
BLURRED = 1e-3  # share of the modes in their last tenth beyond which a run stops
# times rtol: the same share up to which a density is resolved to the tolerance. Errors of the steps
# add up to a few rtol, and are largest in the highest modes.
RESOLVED = 100.0
FINER = (1, 2, 4)  # times the default points: the grids that are tried one after another
NEGATIVE = 1e-8  # share of the largest density that rounding and cutting off may make negative
# times, modes, (density relative to the uniform one, velocity), functionals
Run = tuple[np.ndarray, np.ndarray, Sequence[np.ndarray], dict[str, np.ndarray]]


def evolve(
    dynamics: Dynamics,
    start: Density,
    t: float | None = None,
    *,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int | None = None,
    d: int = 2,
    points: int | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-13,
) -> xr.Dataset:
    """Follow a measure by the continuity equation of a law of motion.

        d mu/dt + div( X[mu] mu ) = (1/kappa) Lap mu

    on the circle (d = 2; any exchangeable law) or, for measures symmetric about an axis, on S^(d-1)
    (SA, USA, Sinkhorn, with noise or repulsive). Spectral in space, adaptive in time
    (Dormand-Prince of order 8; Radau where noise makes it stiff).

    Args:
      dynamics: the law of motion, the same object that moves tokens.
      start: the density at time 0.
      t: final time, 10 unless given; the run stops before it when the grid is too coarse.
      times: the times to keep, instead of `frames` equal ones up to t.
      frames: how many equal times to keep, the start included; 101 unless given.
      d: dimension of the space around the sphere.
      points: nodes of the grid. Unless given, 256 on the circle or 96 latitudes, or two or four
        times as many where the tolerance asks for them.
      rtol, atol: tolerances of a step. The share of the highest modes may be 100 rtol.

    Returns a Dataset with `density` (time, theta) or (time, latitude) with respect to arc length or
    area, `velocity`, `weight` (the quadrature: mass is sum density weight), `mass`, `smallest`
    density, `blur` (share of the highest modes), the order parameter, for gradient flows `energy`
    and `dissipation`, with noise `free_energy`; in `attrs` the recipe, the `resolution` reached,
    and `stopped`, or `warning` (also a RuntimeWarning), where there is something to say.

    Source: (3.1)-(3.8) of arXiv 2312.10794; noise: arXiv 2512.01868.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.meanfield import Ripple
    >>> ripple = Ripple(k=3, amplitude=0.01)
    >>> run = evolve(SelfAttention(beta=4.0), ripple, t=2.0, frames=5, points=64)
    >>> climbs = bool((run.energy.diff("time") > 0).all())
    >>> run.density.dims, bool(abs(run.mass - 1).max() < 1e-14), climbs
    (('time', 'theta'), True, True)
    """
    times = None if times is None else all_numbers("times", times)
    last, count = one_schedule(t, times, frames, LAST, FRAMES)
    _check_asked(dynamics, start, last, times, count)
    grids = _grids(dynamics, d, points, count if times is None else len(times) + 1)
    keep = np.linspace(0, last, count) if times is None else np.union1d([0.0], times)
    resolved = max(RESOLVED * rtol, 1e-12)  # not below rounding
    space, off, run = _followed(dynamics, start, grids, keep, (rtol, atol), resolved)
    recipe = {"verb": "evolve", "dynamics": dynamics, "start": start, "t": float(keep[-1])}
    recipe |= {"times": None if times is None else [float(value) for value in times]}
    recipe |= {"frames": count, "d": d, "points": points, "rtol": rtol, "atol": atol}
    recipe |= {"versions": recipes.versions("jax", "scipy")}
    return _with_resolution(_dataset(space, run, recipe, keep[-1]), space, off, resolved)


def _grids(dynamics: Dynamics, d: int, points: int | None, frames: int) -> list[Grid]:
    """Return the grids to try, or raise where a law or so many frames do not fit them."""
    first, factors = grid(d, points).points, FINER if points is None else (1,)
    grids = [grid(d, factor * first) for factor in factors]
    check(dynamics, grids[0])
    _require_room(grids[-1], frames)
    return grids


def _with_resolution(result: xr.Dataset, space: Grid, off: float, resolved: float) -> xr.Dataset:
    """Keep with a result how well its grid resolves it, and warn where that is not enough."""
    off = max(off, float(result.blur.max()))
    result.attrs["resolution"] = f"{space.points} points, unresolved share {off:.1e}"
    if off > resolved:
        text = f"the grid does not resolve the density to 100 rtol = {resolved:.0e}"
        text += f" ({result.attrs['resolution']}); raise points or rtol"
        result.attrs["warning"] = "; ".join(filter(None, [result.attrs.get("warning"), text]))
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return result


def _followed(
    dynamics: Dynamics,
    start: Density,
    grids: Sequence[Grid],
    keep: np.ndarray,
    within: tuple[float, float],
    resolved: float,
) -> tuple[Grid, float, Run]:
    """(grid, error of the start on it, (times, modes, fields, functionals)) of a measure.

    The grid is the first one that resolves the whole run, or the last one.
    """
    with precision("float64"):
        law = cast(dynamics, "float64")
        for space in grids:
            first = space.coefficients(start.on(space))
            off = max(_between(start, space, first), float(blur(first, space.degree)))
            final = space is grids[-1]
            if off > resolved and not final:
                continue
            what = "enough to resolve the start"
            remedy = f"write points={2 * space.points}"
            require(off < BLURRED, "points", what, space.points, remedy)
            table, most = tables(dynamics, space), BLURRED if final else resolved
            kept, modes = _integrate(law, table, space, first, keep, within, most)
            if kept[-1] == keep[-1]:
                break
        _check_finite(modes, dynamics)
        pairs = [_fields(law, table, jnp.asarray(t), jnp.asarray(a)) for t, a in zip(kept, modes)]
        fields = [np.stack(values) for values in zip(*pairs)]
        return space, off, (kept, modes, fields, functionals(law, dynamics, space, table, modes))


def _between(start: Density, space: Grid, first: np.ndarray) -> float:
    """Return the relative error of a start on a grid, at nodes of another grid.

    Their number has no factor in common with that of the grid, so that no mode looks like another
    one on both.
    """
    other = grid(space.d, 2 * space.points + 1)
    exact = start.on(other)
    far = exact - space.functions(other.nodes)[0] @ first
    return float(np.sqrt((other.weights @ far**2) / (other.weights @ exact**2)))


def _require_room(space: Grid, frames: int) -> None:
    """Refuse more frames than can be kept."""
    held = f"{frames:,} frames on {space.points:,} points"
    require_memory(24.0 * frames * space.points, held, "keep fewer frames")


def _check_asked(
    dynamics: Dynamics, start: Density, t: float, times: np.ndarray | None, frames: int
) -> None:
    known = isinstance(dynamics, Dynamics)
    require(known, "dynamics", "a law such as SelfAttention(beta=4.0)", f"{dynamics!r:.80}")
    require(
        isinstance(start, Density),
        "start",
        "a density such as Ripple(k=3)",
        repr(start),
        "import it from meanfield",
    )
    require_number("t", t, "write e.g. t=10")
    require(math.isfinite(t) and t > 0, "t", "a positive final time", t, "write e.g. t=10")
    require_whole("frames", frames, 2)
    if times is not None:
        fine = times.ndim == 1 and times.size > 0 and np.isfinite(times).all() and times.max() > 0
        require(bool(fine) and times.min() >= 0, "times", "times from 0 on", f"{times!r:.80}")


def blur(modes: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """Share of the modes that lies in the highest tenth of the degrees.

    Small as long as the density is resolved.
    """
    high = degree > 0.9 * degree.max()
    return np.sqrt(np.sum(modes[..., high] ** 2, axis=-1) / np.sum(modes**2, axis=-1))


@eqx.filter_jit
def _slope(law: Dynamics, table: Tables, t: Time, a: Modes) -> Modes:
    return slope(law, t, table, a)


@eqx.filter_jit
def _jacobian(law: Dynamics, table: Tables, t: Time, a: Modes) -> Float[Array, "modes modes"]:
    return jax.jacfwd(lambda a: slope(law, t, table, a))(a)


@eqx.filter_jit
def _fields(law: Dynamics, table: Tables, t: Time, a: Modes) -> tuple[Values, Values]:
    """(density relative to the uniform one, velocity) of one frame."""
    f = table.basis @ a
    return f, velocity(law, t, table, f)


def _integrate(
    law: Dynamics,
    table: Tables,
    space: Grid,
    a: np.ndarray,
    keep: np.ndarray,
    within: tuple[float, float],
    most: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(times, modes): up to the end, or until the share of the highest modes exceeds `most`."""
    rtol, atol = within

    def right(t: float, a: np.ndarray) -> np.ndarray:
        return np.asarray(_slope(law, table, jnp.asarray(t), jnp.asarray(a)))

    def lost(t: float, a: np.ndarray) -> float:
        return float(blur(a, space.degree)) - most

    lost.terminal = True

    def jacobian(t: float, a: np.ndarray) -> np.ndarray:
        return np.asarray(_jacobian(law, table, jnp.asarray(t), jnp.asarray(a)))

    method: dict[str, Any] = {"method": "DOP853"}
    if law.noisy:  # stiff
        method = {"method": "Radau", "jac": jacobian}
    solution = solve_ivp(
        right, (0.0, keep[-1]), a, t_eval=keep, rtol=rtol, atol=atol, events=lost, **method
    )
    if solution.status < 0:
        raise SimulationError(
            f"the solver of the continuity equation gave up: {solution.message}; raise points or"
            " rtol"
        )
    return solution.t, solution.y.T


def _check_finite(modes: np.ndarray, dynamics: Dynamics) -> None:
    if not np.isfinite(modes).all():
        raise SimulationError(
            f"the density of {dynamics!r} left the numbers; raise points, or take the clock 'peak'"
            " for USA"
        )


def _dataset(space: Grid, run: Run, recipe: dict[str, Any], end: float) -> xr.Dataset:
    times, modes, (f, v), extra = run
    across = ("time", space.name)
    density, smear = f / space.surface, blur(modes, space.degree)
    moving = "d theta/dt" if space.d == 2 else "d cos(latitude)/dt"
    attrs = {
        "title": f"tokenflock: {recipe['dynamics']!r}",
        "convention": "flow of the measure",
        "recipe": recipes.dumps(recipe),
    }
    if times[-1] < end:
        why = "the density became narrower than the grid resolves; raise points to go on"
        attrs["stopped"] = f"at t = {times[-1]:.10g}, the last time kept: {why}"
    if (density.min(axis=1) < -NEGATIVE * density.max(axis=1)).any():
        attrs["warning"] = (
            f"the density is negative somewhere (smallest: {density.min():.3g}); raise points"
        )
    first = f @ (space.weights[:, None] * _directions(space))
    variables = {
        "density": (across, density, {"long_name": "density"}),
        "velocity": (across, v, {"long_name": moving}),
        "weight": (
            (space.name,),
            space.weights * space.surface,
            {"long_name": "quadrature weights"},
        ),
        "mass": (("time",), f @ space.weights, {"long_name": "mass"}),
        "smallest": (("time",), density.min(axis=1), {"long_name": "smallest density"}),
        "blur": (("time",), smear, {"long_name": "share of the highest modes"}),
        "order_parameter": (
            ("time",),
            np.linalg.norm(first, axis=1),
            {"long_name": "order parameter"},
        ),
        **{
            name: (("time",), values, {"long_name": name.replace("_", " ")})
            for name, values in extra.items()
        },
    }
    coords = {
        "time": ("time", times, {"long_name": "time"}),
        space.name: (space.name, space.coordinate, {"units": "rad"}),
    }
    return xr.Dataset(variables, coords, attrs)


def _directions(space: Grid) -> np.ndarray:
    """The part of each node that the mean of a measure on this grid can have."""
    angle = space.coordinate
    return (
        np.stack([np.cos(angle), np.sin(angle)], axis=1) if space.d == 2 else np.cos(angle)[:, None]
    )

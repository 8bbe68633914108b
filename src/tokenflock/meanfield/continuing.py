"""`branch`: stationary measures while a number of the law changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import SimulationError, require, require_whole
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.equilibria import Curve, Equilibrium, Point, equilibrium, newton
from tokenflock.meanfield.evolution import blur
from tokenflock.meanfield.grids import Numbers
from tokenflock.meanfield.resting import RATES, STILL, free_energy, relative
from tokenflock.precision import precision

BLURRED = 1e-6  # share of the highest modes beyond which a branch is not followed
BENT = 0.85  # cosine of two tangents below which a step is taken shorter
_ROUNDING = 1e-13  # of free energies, which are sums over the grid
LEVELS = 41  # parameters at which the uniform state is looked at


def branch(
    dynamics: Dynamics,
    parameter: str = "kappa",
    *,
    within: tuple[float, float],
    start: int | Density | xr.Dataset = 1,
    d: int = 2,
    points: int | None = None,
    step: float = 0.05,
    most: int = 400,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Follow stationary measures while kappa, beta or another number of a law changes.

    By pseudo-arclength continuation, so that the branch may turn back: folds are passed, and
    located. Points are stable or not by the eigenvalues of small changes, as in `stationary`.

    Args:
      dynamics: a law with noise, e.g. `Noisy(Unnormalised(beta=4.0))`.
      parameter: the number that changes: kappa, beta, ...
      within: the parameters between which it is followed.
      start: a degree k: the branch that leaves the uniform measure where a ripple of degree k
        begins to grow (of isotropic laws); or a density or measure near a stationary one, at the
        parameter that the law has.
      d, points: as in `evolve`.
      step: length of a step, in modes of the density and in the parameter relative to its size.
      most: points at most.
      progress: called with the share of the range that is done.

    Returns a Dataset along `point` with the parameter under its name, `order_parameter`, `density`,
    `rate` (the largest eigenvalues), `stable` (1 or 0), for gradient flows `gain`, by which the
    free energy exceeds that of the uniform measure; with `fold` and `fold_order_parameter` (where
    it turns back), `transition` and `transition_order_parameter` (where the gain changes its sign,
    so that order takes over), `leaves` (where it leaves the uniform measure), and the largest rate
    `uniform_rate` of the uniform measure at `level`.

    Source: arXiv 2412.14813; arXiv 2510.20094. Keller, Applications of Bifurcation Theory (1977).

    >>> from tokenflock.dynamics import Noisy, Unnormalised
    >>> law = Noisy(Unnormalised(beta=4.0))
    >>> states = branch(law, within=(0.3, 0.45), points=64, step=0.2)
    >>> kappa_c = float(states.leaves)  # beta / I_1(beta)
    >>> print(f"{kappa_c:.6f} {float(states.fold[0]) / kappa_c:.4f}")
    0.409859 0.9444
    """
    low, high = _checked(within, step, most)
    with precision("float64"):
        problem = equilibrium(dynamics, parameter, d, points, high)
        ways, leaves = _ways(problem, start, (low, high))
        curve, sides, why = _sides(problem, ways, (low, high), step, most, progress)
        table = _table(curve, sides)
        marks = _told(curve, sides) | _uniform(problem, (low, high))
    recipe = {"verb": "branch", "dynamics": dynamics, "parameter": parameter, "within": [low, high]}
    recipe |= {"start": None if isinstance(start, xr.Dataset) else start, "d": d}
    recipe |= {"points": problem.space.points, "step": step, "most": most}
    recipe["versions"] = recipes.versions("jax", "numpy")
    return _dataset(problem, table, marks, leaves, recipe, why)


def _checked(within: tuple[float, float], step: float, most: int) -> tuple[float, float]:
    """The ends of the range, where a branch can be followed in such steps."""
    low, high = (float(value) for value in within)
    fits = low < high and bool(np.isfinite([low, high]).all())
    require(fits, "within", "(low, high)", (low, high), "write e.g. within=(0.5, 3.0)")
    require(0 < step < np.inf, "step", "positive and finite", step, "write e.g. step=0.05")
    require_whole("most", most, 1)
    return low, high


def _sides(
    problem: Equilibrium,
    ways: list[Point],
    within: tuple[float, float],
    step: float,
    most: int,
    progress: Callable[[float], None] | None,
) -> tuple[Curve, list[list[Point]], str]:
    """(the curve, its points along each way, why it ended before the range did)."""
    first = float(ways[0].z[-1])
    curve = Curve(problem, abs(first) if first else 1.0)
    sides, reasons = [], []
    for done, way in enumerate(ways):
        scaled = Point(_scaled(way.z, curve.scale), way.tangent)
        report = _reporter(progress, done, len(ways))
        side, reason = _follow(curve, scaled, within, step, most // len(ways), report)
        sides.append(side)
        reasons.append(reason)
    return curve, sides, "; ".join(dict.fromkeys(filter(None, reasons)))


def _scaled(z: Numbers, scale: float) -> Numbers:
    return np.append(z[:-1], z[-1] / scale)


def _ways(
    problem: Equilibrium, start: Any, within: tuple[float, float]
) -> tuple[list[Point], float | None]:
    """(points to start from, each with its direction; where the uniform measure is left)."""
    count = len(problem.even)
    if isinstance(start, (int, np.integer)):
        p = _critical(problem, int(start), within)
        direction = np.zeros(count + 1)
        direction[problem.mode(int(start))] = 1.0
        ways = [Point(np.append(np.zeros(count), p), direction)]
        if problem.space.d > 2 and start % 2 == 0:  # up and down are different states
            ways.append(Point(ways[0].z, -direction))
        return ways, p
    p = problem.value
    inside = within[0] <= p <= within[1]
    require(inside, "within", "around the parameter of the law", within, f"it is {p:g} there")
    z = np.append(newton(problem, problem.guess(start), p), p)
    along = np.append(np.zeros(count), 1.0)
    return [Point(z, along), Point(z, -along)], None


def _critical(problem: Equilibrium, degree: int, within: tuple[float, float]) -> float:
    """The parameter at which a ripple of the uniform measure begins to grow."""
    require(
        problem.dynamics.isotropic,
        "start",
        "a density, since the law is not isotropic",
        degree,
        "write e.g. start=VonMises(2.0)",
    )
    k = problem.mode(degree) if 1 <= degree < problem.modes.max() else -1
    require(k >= 0, "start", "a degree of 1 or more that the grid has", degree)

    def rate(p: float) -> float:
        _, D = problem.residual(np.zeros(len(problem.even)), p)
        return float(D[k, k])

    ends = [rate(p) for p in within]
    require(
        ends[0] * ends[1] < 0,
        "within",
        f"a range in which a ripple of degree {degree} begins to grow",
        within,
        f"its rates there are {ends[0]:.3g} and {ends[1]:.3g}",
    )
    return _root(rate, *within)


def _reporter(
    progress: Callable[[float], None] | None, done: int, ways: int
) -> Callable[[float], None]:
    """Tells how much of one way is done."""

    def report(share: float) -> None:
        if progress:
            progress((done + min(max(share, 0.0), 1.0)) / ways)

    return report


def _follow(
    curve: Curve,
    way: Point,
    within: tuple[float, float],
    step: float,
    most: int,
    report: Callable[[float], None],
) -> tuple[list[Point], str]:
    """(points of one way, why it ended before the range did)."""
    at_rest = np.abs(way.z[:-1]).max() > 0
    points = [Point(way.z, curve.tangent(way.z, way.tangent)) if at_rest else way]
    size, problem = step / 4, curve.problem
    while len(points) < most:
        new = curve.onto(points[-1], size)
        if new is None or new.tangent @ points[-1].tangent < BENT:
            size /= 2
            if size < 1e-6 * step:
                return points, "no point of the branch was found any more"
            continue
        p = float(new.z[-1] * curve.scale)
        if not within[0] <= p <= within[1]:
            end = _last(curve, points[-1], new, within[0] if p < within[0] else within[1])
            return points + ([end] if end else []), ""
        if blur(problem.full(new.z[:-1]), problem.modes) > BLURRED:
            return points, "the density became narrower than the grid resolves; raise points"
        points.append(new)
        size = min(1.3 * size, step)
        report(len(points) / most)
    return points, f"it has {most} points; raise most"


def _last(curve: Curve, before: Point, after: Point, p: float) -> Point | None:
    """The point at the end of the range, between two points of the branch."""
    try:
        return _between(curve, before, after, lambda point: float(point.z[-1] * curve.scale - p))
    except (SimulationError, np.linalg.LinAlgError):
        return None


def _marks(curve: Curve, side: list[Point]) -> dict[str, list[Point]]:
    """Folds, where the parameter turns back, and transitions, where the free energy is that of the
    uniform measure.
    """
    folds, transitions = [], []
    gains = [_gain(curve, point) for point in side]
    for before, after, low, high in zip(side, side[1:], gains, gains[1:]):
        if before.tangent[-1] * after.tangent[-1] < 0:
            folds.append(_between(curve, before, after, lambda point: float(point.tangent[-1])))
        if low is not None and high is not None and low * high < 0:
            transitions.append(_between(curve, before, after, lambda point: _gain(curve, point)))
    return {"fold": folds, "transition": transitions}


def _told(curve: Curve, sides: list[list[Point]]) -> dict[str, Any]:
    """Parameters and order parameters of folds and transitions."""
    marks = [_marks(curve, side) for side in sides]
    variables: dict[str, Any] = {}
    for name in ("fold", "transition"):
        points = [point for side in marks for point in side[name]]
        order = [curve.problem.order_parameter(point.z[:-1]) for point in points]
        variables[name] = ((f"{name}s",), [float(point.z[-1] * curve.scale) for point in points])
        variables[f"{name}_order_parameter"] = ((f"{name}s",), order)
    return variables


def _between(curve: Curve, before: Point, after: Point, wanted: Callable[[Point], Any]) -> Point:
    """The point between two where a function of points vanishes."""
    length = float(before.tangent @ (after.z - before.z))

    def point(s: float) -> Point:
        reached = curve.onto(before, s)
        if reached is None:
            raise SimulationError("a point of the branch could not be located; take a smaller step")
        return reached

    values = {0.0: wanted(before), length: wanted(after)}
    return point(_root(lambda s: values[s] if s in values else wanted(point(s)), 0.0, length))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign, by Brent's method."""
    return cast(float, brentq(function, low, high, xtol=1e-13))


def _gain(curve: Curve, point: Point) -> float | None:
    """By how much the free energy exceeds that of the uniform measure; 0 where that is rounding."""
    a, p = point.z[:-1], float(point.z[-1] * curve.scale)
    here = free_energy(curve.problem, a, p)
    flat = free_energy(curve.problem, np.zeros_like(a), p)
    if here is None or flat is None:
        return None
    return here - flat if abs(here - flat) > _ROUNDING * (1 + abs(flat)) else 0.0


def _joined(sides: list[list[Point]]) -> list[Point]:
    """One line of points out of one or two ways from the same start."""
    return sides[0] if len(sides) == 1 else sides[1][:0:-1] + sides[0]


def _table(curve: Curve, sides: list[list[Point]]) -> dict[str, Any]:
    """What is told of every point."""
    problem, points = curve.problem, _joined(sides)
    a = [point.z[:-1] for point in points]
    p = [float(point.z[-1] * curve.scale) for point in points]
    gains = [_gain(curve, point) for point in points]
    return {
        "p": np.array(p),
        "order": np.array([problem.order_parameter(each) for each in a]),
        "density": np.array([relative(problem, each) for each in a]) / problem.space.surface,
        "rate": np.array([problem.rates(each, at)[:RATES] for each, at in zip(a, p)]),
        "gain": None if gains[0] is None else np.array(gains, float),
    }


def _stable(rates: Numbers) -> np.ndarray:
    """1 where the largest rate is negative; where it vanishes, as the next point is."""
    sign = np.where(np.abs(rates) < STILL, 0, np.sign(rates))
    for k in range(len(sign) - 2, -1, -1):
        sign[k] = sign[k] or sign[k + 1]
    return (sign <= 0).astype(np.int8)


def _uniform(problem: Equilibrium, within: tuple[float, float]) -> dict[str, Any]:
    """The largest rate of the uniform measure over the range, where it is at rest."""
    if not problem.dynamics.isotropic:
        return {}
    levels = np.linspace(*within, LEVELS)
    flat = np.zeros(len(problem.even))
    rates = [problem.rates(flat, p)[0] for p in levels]
    return {
        "uniform_rate": (("level",), rates, {"long_name": "largest rate of the uniform measure"}),
        "level": (("level",), levels),
    }


def _dataset(
    problem: Equilibrium,
    table: dict[str, Any],
    marks: dict[str, Any],
    leaves: float | None,
    recipe: dict[str, Any],
    why: str,
) -> xr.Dataset:
    space, parameter = problem.space, recipe["parameter"]
    variables: dict[str, Any] = {
        "order_parameter": (("point",), table["order"], {"long_name": "order parameter"}),
        "density": (("point", space.name), table["density"], {"long_name": "density"}),
        "weight": ((space.name,), space.weights * space.surface),
        "rate": (("point", "mode"), table["rate"], {"long_name": "growth rate of small changes"}),
        "stable": (("point",), _stable(table["rate"][:, 0]), {"long_name": "whether it is stable"}),
        **marks,
    }
    if table["gain"] is not None:
        variables["gain"] = (("point",), table["gain"], {"long_name": "gain in free energy"})
    if leaves is not None:
        variables["leaves"] = ((), leaves, {"long_name": f"{parameter} where it begins"})
    attrs = {"title": f"tokenflock: {recipe['dynamics']!r}", "parameter": parameter}
    attrs["recipe"] = recipes.dumps(recipe)
    if why:
        attrs["stopped"] = why
    coords = {
        parameter: ("point", table["p"], {"long_name": parameter}),
        space.name: (space.name, space.coordinate, {"units": "rad"}),
    }
    return xr.Dataset(variables, coords, attrs)

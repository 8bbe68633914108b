"""How far the steps of an ensemble are from the flow: a pilot of some systems, and what follows.

Some systems of each cell are run again by steps of controlled length with a much smaller tolerance.
The mean difference of each observable plus two paired standard errors is the error of time
stepping. Where no solver was given and this exceeds the tolerance, all systems of the cell are run
by controlled steps. Where no such steps are accurate either, the cell is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.controlled import trajectory
from tokenflock.engines.course import Course
from tokenflock.engines.job import PASSAGE
from tokenflock.errors import AccuracyWarning, SimulationError, UserError, require, require_number
from tokenflock.precision import cast, precision
from tokenflock.shapes import Tokens
from tokenflock.solvers.adaptive import Adaptive, Method
from tokenflock.solvers.euler_maruyama import EulerMaruyama
from tokenflock.solvers.layer import Layer
from tokenflock.solvers.rk4 import RK4
from tokenflock.solvers.solver import FixedStep, Solver

if TYPE_CHECKING:
    from tokenflock.verbs.cells import Bench
    from tokenflock.verbs.plan import Plan

TOLERANCE = 1e-3  # of the largest value of an observable
PILOT = 8  # systems of a cell
PILOT_NOISY = 64  # the same with noise
PAIRS = 2**22  # of tokens, in all systems of a pilot: fewer systems where tokens are many
FEW = 4000  # steps of an explicit pair, after which the law counts as stiff
MANY = 300_000  # stages of stabilised steps, after which a system is given up
MANY_NOISY = 3_000_000  # the same with noise, where each of its increments takes some stages
FINER = 4  # times as often as in the solver, noise enters in the reference
FLIPS = 2  # jumps just before a frame and not after it that controlled steps may have
SHOWN = 10_000_000  # numbers whose largest one is told
REFUSED = -1  # in `scheme`

ERROR, DISTANCE = "_step_error", "_flow_distance"
ABOUT = ("accurate", "scheme")  # variables about a whole cell
LABELS = {
    "scheme": "solver of a cell, by its number in `solvers`; -1 where none is accurate",
    "accurate": "whether the error of time stepping is within the tolerance",
    ERROR: ", error of time stepping",
    DISTANCE: ", distance of the layer map from the flow",
}

Cells = Sequence[tuple[int, ...]]
Arrays = dict[str, np.ndarray]
Steps = FixedStep | Adaptive


def require_tolerance(tolerance: float | None, given: bool) -> None:
    """Raise unless steps in float64 can meet the tolerance, or a given solver needs none."""
    if tolerance is None:
        remedy = "name a solver to run without a check, e.g. solver=RK4(h=0.1)"
        require(given, "tolerance", "a number, without a solver", None, remedy)
        return
    require_number("tolerance", tolerance, "write e.g. tolerance=1e-3")
    require(1e-7 <= tolerance < 1, "tolerance", "from 1e-7 to below 1", tolerance)


def nominal(law: Dynamics) -> FixedStep:
    """Return the solver that a cell is tried with first, where none is given."""
    return EulerMaruyama(h=0.01) if law.noisy else RK4(h=0.1)


def controlled_schemes(law: Dynamics, tolerance: float) -> list[Adaptive]:
    """Return the controlled steps that a cell is tried with after `nominal`, in this order."""
    if law.noisy:
        return [_between_noise(1e-3 * tolerance, step) for step in (0.01, 0.0025, 0.000625)]
    return [_pair(1e-4 * tolerance), _stabilised(1e-4 * tolerance)]


def schemes(law: Dynamics, tolerance: float | None) -> list[Steps]:
    """Return all solvers of the default, as `scheme` numbers them.

    >>> from tokenflock.dynamics import SelfAttention
    >>> [type(solver).__name__ for solver in schemes(SelfAttention(), 1e-3)]
    ['RK4', 'Adaptive', 'Adaptive']
    """
    return [nominal(law), *controlled_schemes(law, tolerance or TOLERANCE)]


def references(law: Dynamics, solver: Steps, tolerance: float) -> list[Adaptive]:
    """Return the solvers that may follow a pilot of this solver accurately, in this order.

    Noise enters four times as often, on the same Brownian path.
    """
    if not law.noisy:
        return [_pair(1e-6 * tolerance), _stabilised(1e-5 * tolerance)]
    step = solver.h if isinstance(solver, FixedStep) else solver.noise_step
    return [_between_noise(1e-4 * tolerance, step)]


def _pair(rtol: float) -> Adaptive:
    return Adaptive(float(f"{rtol:.3g}"), method=Method.TSIT5, max_steps=FEW)


def _stabilised(rtol: float) -> Adaptive:
    return Adaptive(float(f"{rtol:.3g}"), method=Method.CHEBYSHEV, max_steps=MANY)


def _between_noise(rtol: float, step: float) -> Adaptive:
    rtol = float(f"{rtol:.3g}")
    return Adaptive(rtol, method=Method.CHEBYSHEV, max_steps=MANY_NOISY, noise_step=step)


@dataclass(frozen=True)
class Pilot:
    """The first systems of some cells, as a solver leads them."""

    values: Arrays  # name -> (cells, systems, frames, ...)
    finished: np.ndarray  # (cells,)
    solver: np.ndarray  # (cells,), which of the solvers that were tried finished

    def at(self, cells: np.ndarray) -> Pilot:
        """Return the pilot of some of the cells."""
        values = {name: array[cells] for name, array in self.values.items()}
        return Pilot(values, self.finished[cells], self.solver[cells])


def pilot(bench: Bench, cells: Cells, solvers: Sequence[Adaptive], intervals: int = 1) -> Pilot:
    """Run the first systems of each cell by the first solver that leads all of them to the end."""
    count = _size(bench)
    values: Arrays = {}
    by = np.full(len(cells), REFUSED)
    for number, solver in enumerate(solvers):
        left = np.flatnonzero(by == REFUSED)
        if not len(left):
            break
        few = [cells[k] for k in left.tolist()]
        new, finished = bench.controlled(few, np.arange(count), solver, intervals)
        by[left[np.all(finished.reshape(len(left), count), axis=1)]] = number
        for name, array in new.items():
            array = array.reshape(len(left), count, *array.shape[1:])
            values.setdefault(name, np.empty((len(cells), *array.shape[1:])))[left] = array
    return Pilot(values, by != REFUSED, by)


def compared(bench: Bench, mine: Pilot, exact: Pilot, flips: int) -> tuple[Arrays, np.ndarray]:
    """Return the errors of a pilot, name -> (cells, frames, ...), and which cells are accurate."""
    plan, noisy = bench.plan, bench.sheet.dynamics.noisy
    jumps = {each.name: each.jump for each in bench.sheet.observe}
    labels = {each.name for each in bench.sheet.observe if each.labels}
    levels = 1 if plan.until is None or not plan.until.levels else 2
    accurate, errors = mine.finished & exact.finished, {}
    for name in [name for name in exact.values if name not in labels]:
        pair = mine.values[name], exact.values[name]
        if name == PASSAGE:  # systems in which nothing happened count with the end
            pair = tuple(np.where(np.isnan(each), bench.times[-1], each) for each in pair)
        count, frames = pair[1].shape[1:3]
        gap, spread = _gap(*pair)
        errors[name] = gap + 2 * spread
        if name == PASSAGE and levels == 1:
            errors[name] = errors[name][:, 0]
        allowed, size = plan.tolerance * _largest(pair[1]), errors[name]
        if noisy:  # paths differ at random; what counts is a difference of means that is seen
            own = pair[0].std(axis=1, ddof=min(1, count - 1)) / plan.repeats**0.5
            seen = np.fmax(_root_mean_square(own), 2 * _root_mean_square(spread))
            allowed, size = np.fmax(allowed, seen), gap
        allowed = np.fmax(allowed, 3 * jumps.get(name, 0.0) * (flips / frames) ** 0.5 / count)
        accurate = accurate & (_root_mean_square(size) <= allowed)  # False for NaN
    return errors, accurate


def _gap(mine: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of the mean difference and its paired standard error, (cells, ...)."""
    # tokens of weight zero have no value in either
    gap = np.where(np.isnan(mine) & np.isnan(exact), 0, mine - exact)
    count = gap.shape[1]
    mean = np.abs(gap.mean(axis=1))
    return mean, gap.std(axis=1, ddof=1) / count**0.5 if count > 1 else 0 * mean


def _largest(values: np.ndarray) -> np.ndarray:
    """Return the largest absolute value in each cell, (cells,)."""
    return np.nan_to_num(np.abs(values)).reshape(len(values), -1).max(axis=1)


def _root_mean_square(values: np.ndarray) -> np.ndarray:
    """Return the root mean square of each cell, (cells,)."""
    return np.sqrt(np.mean(values.reshape(len(values), -1) ** 2, axis=1))


def pilot_size(repeats: int, n: int, noisy: bool) -> int:
    """Return how many systems of a cell its pilot has: more with noise, which hides errors."""
    most = PILOT_NOISY if noisy else PILOT
    return min(repeats, max(2, min(most, PAIRS // n**2)))


def _size(bench: Bench) -> int:
    sheet = bench.sheet
    return pilot_size(bench.plan.repeats, sheet.start.shape[0], sheet.dynamics.noisy)


def checked(bench: Bench, cells: Cells, values: dict[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the values of all systems, by controlled steps where those of the default solver are
    too long, and what is known of the accuracy of each cell.
    """
    plan, solver, law = bench.plan, bench.sheet.solver, bench.sheet.dynamics
    if plan.tolerance is None or isinstance(solver, Adaptive):
        return values, {}
    intervals = FINER if law.noisy else 1
    try:
        exact = pilot(bench, cells, references(law, solver, plan.tolerance), intervals)
    except UserError:
        if isinstance(solver, Layer):  # of a law without a flow
            return values, {}
        raise
    errors, accurate = compared(bench, _first(bench, values, len(cells)), exact, flips=0)
    if isinstance(solver, Layer):
        return values, {name + DISTANCE: error for name, error in errors.items()}
    known = {"accurate": accurate}
    if not plan.given:
        scheme = np.where(accurate, 0, REFUSED)
        for number, other in enumerate(controlled_schemes(law, plan.tolerance), 1):
            # where no noise asks for other steps, the reference says which kind of step is good
            fits = (scheme == REFUSED) & (law.noisy | (exact.solver == number - 1))
            left = np.flatnonzero(fits)
            if not len(left):
                continue
            few = [cells[k] for k in left.tolist()]
            mine = pilot(bench, few, [other])
            finer = exact.at(left)
            if law.noisy:
                finer = pilot(bench, few, references(law, other, plan.tolerance), intervals)
            gaps, fine = compared(bench, mine, finer, FLIPS)
            good = left[fine]
            whole, done = _all(bench, [cells[k] for k in good.tolist()], other, mine.at(fine))
            values = _replaced(values, plan.repeats, good[done], whole, done)
            scheme[good[done]] = number
            for name, gap in gaps.items():
                errors[name][good[done]] = gap[fine][done]
        lost = np.flatnonzero(scheme == REFUSED)
        values = _replaced(values, plan.repeats, lost)
        for error in errors.values():
            error[lost] = np.nan
        known = {"accurate": scheme != REFUSED, "scheme": scheme}
    return values, {name + ERROR: error for name, error in errors.items()} | known


def _first(bench: Bench, values: dict[str, Any], cells: int) -> Pilot:
    """Return the values of the first systems of each cell as a pilot."""
    repeats = bench.plan.repeats
    count = _size(bench)
    rows = (repeats * np.arange(cells)[:, None] + np.arange(count)).ravel()
    own = {name: np.asarray(array[rows], float) for name, array in values.items()}
    shaped = {name: array.reshape(cells, count, *array.shape[1:]) for name, array in own.items()}
    return Pilot(shaped, np.ones(cells, bool), np.zeros(cells, int))


def _all(bench: Bench, cells: Cells, solver: Adaptive, first: Pilot) -> tuple[Arrays, np.ndarray]:
    """Return the values of all systems of these cells, and which cells reached the end; the pilot
    is all where a cell has no more systems.
    """
    repeats = bench.plan.repeats
    if not cells or all(array.shape[1] == repeats for array in first.values.values()):
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in first.values.items()}
        return flat, first.finished
    values, finished = bench.controlled(cells, np.arange(repeats), solver)
    return values, np.all(finished.reshape(len(cells), repeats), axis=1)


def _replaced(
    values: dict[str, Any],
    repeats: int,
    cells: np.ndarray,
    others: Arrays | None = None,
    which: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the values with those of some cells replaced, by NaN unless there are others."""
    if not len(cells):
        return values
    new = {}
    for name, array in values.items():
        array = np.array(array)
        array = array if array.dtype.kind == "f" else array.astype(float)
        whole = array.reshape(-1, repeats, *array.shape[1:])
        if others is None:
            whole[cells] = np.nan
        else:
            whole[cells] = others[name].reshape(-1, *whole.shape[1:])[which]
        new[name] = whole.reshape(array.shape)
    return new


def judged(result: xr.Dataset, plan: Plan, stored: bool) -> xr.Dataset:
    """Return the result with a line on its accuracy.

    Warn of cells whose given step is too long. Raise where cells of the default are refused, but
    only warn where a store keeps the others.
    """
    result = result.assign_attrs(accuracy=_line(result, plan))
    if "accurate" not in result or bool(result["accurate"].all()):
        return result
    at = _places(result["accurate"])
    if "scheme" not in result:
        warn_of_step(plan.solver, at, plan.tolerance)
        return result
    what = f"{type(plan.dynamics).__name__}: no steps that were tried are accurate to"
    what += f" {plan.tolerance:g}{at}"
    remedy = "take a shorter time or a smaller beta, or Layer(h=0.1) for the layer map"
    if not stored:
        raise SimulationError(f"{what}; {remedy}")
    warnings.warn(f"{what}, and these cells hold NaN; {remedy}", AccuracyWarning, stacklevel=3)
    return result


def warn_of_step(solver: Solver, at: str, tolerance: float | None) -> None:
    """Warn that a given step is too long."""
    warnings.warn(
        f"the step of {solver!r} is too long{at}: its error exceeds {tolerance:g} of the largest"
        " value; take a shorter step, or leave the solver out",
        AccuracyWarning,
        stacklevel=4,
    )


def gap_to_flow(
    law: Dynamics, x: Tokens, w: Any, times: np.ndarray, frames: np.ndarray, tolerance: float
) -> float:
    """Return how far the frames of one system are from its flow, as a share of the longest token:
    the largest distance of a token in each frame, root mean square over frames. NaN where the law
    is too stiff for accurate steps.
    """
    for exact in references(law, RK4(h=0.1), tolerance):
        with suppress(SimulationError), precision("float64"):
            own, start = cast(law, "float64"), jnp.asarray(np.asarray(x, float))
            weights = jnp.asarray(np.asarray(w, float))
            course = Course(own, exact, start, weights, times, exact.tolerances("float64"))
            gaps = np.linalg.norm(trajectory(course, None)[1] - frames, axis=-1)
            longest = np.linalg.norm(frames, axis=-1).max()
            return float(np.sqrt((gaps.max(axis=1) ** 2).mean()) / longest)
    return float("nan")


def _line(result: xr.Dataset, plan: Plan) -> str:
    """Return in a line how accurate a result is."""
    solver, tolerance = plan.solver, plan.tolerance
    if isinstance(solver, Adaptive):
        rtol, atol = solver.tolerances(plan.dtype)
        return f"time stepping: steps controlled to rtol {rtol:g}, atol {atol:g}"
    if tolerance is None:
        return "time stepping: not checked (tolerance=None)"
    kind = DISTANCE if isinstance(solver, Layer) else ERROR
    known = {str(name): result[name] for name in result.data_vars if str(name).endswith(kind)}
    if not known:
        return "layer map of a law without a flow: no error of time stepping"
    small = {name: each for name, each in known.items() if each.size <= SHOWN}
    worst = {name.removesuffix(kind): float(each.max()) for name, each in small.items()}
    shown = ", ".join(f"{name} {value:.1g}" for name, value in worst.items()) or f"see *{kind}"
    pilot = "by accurate steps of some systems of each cell"
    if kind == DISTANCE:
        return f"layer map: distance from the flow at most {shown}, {pilot}"
    ran = _named(solver)
    if "scheme" in result:
        scheme, names = result["scheme"].values, schemes(plan.dynamics, tolerance)
        counts = [(_named(each), int((scheme == k).sum())) for k, each in enumerate(names)]
        counts.append(("refused", int((scheme == REFUSED).sum())))
        shares = (f"{name}: {count} of {scheme.size} cells" for name, count in counts if count)
        ran = ", ".join(shares)
    return f"time stepping: error at most {shown} (tolerance {tolerance:g}), {pilot}; {ran}"


def _named(solver: Steps) -> str:
    """Return a short name of a solver."""
    if isinstance(solver, Adaptive):
        return f"controlled steps ({solver.method.name.lower()}, rtol {solver.rtol:g})"
    return repr(solver)


def _places(accurate: xr.DataArray) -> str:
    """Return the cells that are not accurate, in words."""
    where, axes = np.argwhere(~accurate.values.astype(bool)), [str(dim) for dim in accurate.dims]
    if not axes:
        return ""
    some = [
        ", ".join(f"{name} = {accurate[name].values[k]:g}" for name, k in zip(axes, place))
        for place in where[:5]
    ]
    return f" at {'; '.join(some)}" + (f" and {len(where) - 5} more cells" * (len(where) > 5))

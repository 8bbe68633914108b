"""`lyapunov`: how fast nearby runs part or meet."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import tangents
from tokenflock.engines.place import placed
from tokenflock.errors import (
    SimulationError,
    UserError,
    require,
    require_number,
    require_whole,
)
from tokenflock.precision import cast, precision
from tokenflock.solvers.rk4 import RK4
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.start import Start
from tokenflock.verbs.accuracy import TOLERANCE, warn_of_step
from tokenflock.verbs.flow_map import step_count
from tokenflock.verbs.overflow import remedies
from tokenflock.verbs.prepare import as_start, prepare
from tokenflock.verbs.schedule import check, check_kinds
from tokenflock.verbs.simulate import simulate

EVERY = 0.5  # time between two QR
APART = 10.0  # e-folds between two QR: of more, the slower vectors drown in rounding
FIRST = 0.01  # the step that is tried first
FRAMES = 33  # at which the fastest rate is measured
MOST = 1e8  # steps
BLOCKS = 20  # of a run, between which progress is told


def lyapunov(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    t: float = 100.0,
    solver: Solver | None = None,
    *,
    exponents: int | None = None,
    settle: float | None = None,
    every: float | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Lyapunov exponents along one run, by QR.

        lambda_k = lim (1/t) log (stretch of the k-th orthonormal tangent vector)

    Tangent vectors are carried along by the derivative of each step and made orthonormal again and
    again; the logarithms of the diagonal of R add up. The sum of the first k exponents is the rate
    at which volumes of dimension k grow. With noise, nearby runs feel the same dW in R^d. Source:
    Benettin, Galgani, Giorgilli, Strelcyn, Meccanica 15 (1980).

    Args:
      dynamics: the law of motion.
      start: a start law, or tokens (n, d).
      t: how long exponents are averaged, after `settle`.
      solver: of fixed step. Unless given, `RK4(h=0.01)`, or a shorter step where the fastest rate
        of the law asks for it; laws with noise need one. `Layer(h)` for a Transformer.
      exponents: how many, the largest first; all of them unless given.
      settle: time before averaging begins, in which vectors turn; a quarter of t unless given.
      every: time between two QR: 0.5 unless given, or less where the fastest rate asks for it.
      seed: of the start and the noise.
      progress: called with the share of the work that is done.

    Returns a Dataset with `exponent` (mode), `estimate` (time, mode), what they would be had the
    average ended there, and the last tokens `x` (particle, coord).

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.solvers import RK4
    >>> result = lyapunov(SelfAttention(beta=4.0), np.eye(2)[[0, 0, 0]], t=20, solver=RK4(h=0.1))
    >>> (result.exponent.values.round(3) + 0).tolist()  # a rotation, and two ways to contract
    [0.0, -1.0, -1.0]
    """
    check_kinds(dynamics, (), seed, solver=solver)
    start = as_start(dynamics, start)
    noise = "write solver=EulerMaruyama(h=0.01), and compare with half the step"
    named = solver is not None or not dynamics.noisy
    require(named, "solver", "given, for a law with noise", None, noise)
    settle = t / 4 if settle is None else settle
    first = _fixed(solver or RK4(h=FIRST))
    check(dynamics, start, first, t, None, 2)
    _rounds(first, t, EVERY if every is None else every, settle)
    solver, rate, line = _checked(dynamics, start, solver, t, settle, seed)
    every = min(EVERY, APART / rate if rate > 0 else EVERY) if every is None else every
    rounds = _rounds(solver, t, every, settle)
    stretched, x = _stretched(dynamics, start, solver, rounds, exponents, seed, progress)
    recipe = {"verb": "lyapunov", "dynamics": dynamics, "start": start, "t": t, "solver": solver}
    recipe |= {"exponents": exponents, "settle": settle, "every": every, "seed": seed}
    recipe["versions"] = recipes.versions("jax")
    result = _dataset(stretched, float(solver.h) * rounds[0], x, recipe)
    return result.assign_attrs(accuracy=line)


def _checked(
    dynamics: Dynamics, start: Start, given: Solver | None, t: float, settle: float, seed: int
) -> tuple[FixedStep, float, str]:
    """Return the solver, the fastest rate where it is known, and a line on the accuracy.

    A method of order p grows a mode of rate r by (h r)^p / (p + 1)! too little or too much, as a
    share of its rate. So h times the fastest rate must be small: it is measured at some frames of
    an accurate run.
    """
    solver = _fixed(given or RK4(h=FIRST))
    if solver.convention != "flow" or dynamics.noisy:
        return solver, 0.0, "time stepping: not checked"
    longest = (TOLERANCE * math.factorial(solver.order + 1)) ** (1 / solver.order)
    rate = _fastest(dynamics, start, t + settle, seed)
    h = float(solver.h)
    if given is None:
        while h * rate > longest:
            h /= 2
        steps = (t + settle) / h
        wanted = f"shorter: its fastest rate {rate:.3g} needs {steps:.2g} steps"
        remedy = "take a shorter t, or a smaller beta"
        require(steps <= MOST, "t", wanted, f"{t:g}", remedy)
        solver = RK4(h=h)
    elif h * rate > longest:
        warn_of_step(solver, f" for the fastest rate, {rate:.3g}", TOLERANCE)
    line = f"time stepping: h times the fastest rate is {h * rate:.2g} (limit {longest:.2g})"
    return solver, rate, line


def _fastest(dynamics: Dynamics, start: Start, t: float, seed: int) -> float:
    """Return the largest norm of the derivative of the velocity, at some frames of an accurate
    run.
    """
    run = simulate(dynamics, start, t, frames=FRAMES, seed=seed)
    with precision("float64"):
        law, w = cast(dynamics, "float64"), jnp.asarray(run["w"].values)
        norms = []
        for time, x in zip(run["time"].values, run["x"].values):
            _, D = tangents.of_velocity(law, jnp.asarray(x), w, jnp.asarray(time))
            frame = np.asarray(law.space.frame(jnp.asarray(x)))
            norms.append(np.linalg.norm(tangents.restricted(D, frame, frame), 2))
    return float(max(norms))


def _fixed(solver: Solver) -> FixedStep:
    """The solver, if its step is fixed."""
    if not isinstance(solver, FixedStep):
        raise UserError(
            f"solver must be one of fixed step, got {type(solver).__name__}; use RK4(h=0.01)"
        )
    return solver


def _stretched(
    dynamics: Dynamics,
    start: Start,
    solver: FixedStep,
    rounds: tuple[int, int, int],
    exponents: int | None,
    seed: int,
    progress: Callable[[float], None] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(logarithms by which the vectors grew in each round that counts, tokens at the end)."""
    stride, counted, waiting = rounds
    with precision("float64"), placed(*start.shape):
        law, x, w, key = prepare(dynamics, start, seed, "float64")
        scheme = cast(solver, "float64")
        vectors = _vectors(dynamics, np.asarray(x), exponents, seed)
        grown, done = [], 0
        for size in _parts(waiting + counted):
            first = jnp.asarray(done * stride)
            x, vectors, logs = tangents.stretch(
                law, scheme, x, w, vectors, first, key, stride, size
            )
            grown.append(np.asarray(logs))
            done += size
            if progress:
                progress(done / (waiting + counted))
    stretched, end = np.concatenate(grown)[waiting:], np.asarray(x)
    if not np.isfinite(end).all() or np.isnan(stretched).any():
        raise SimulationError(f"{dynamics!r} left the numbers; {remedies(dynamics, 'float64')}")
    return stretched, end


def _rounds(solver: FixedStep, t: float, every: float, settle: float) -> tuple[int, int, int]:
    """(steps between two QR, QR that count, QR before them)."""
    fine = 0 < every < np.inf
    require(fine, "every", "a positive time between two QR", every, "write e.g. every=0.5")
    require_number("settle", settle, "write e.g. settle=10")
    wanted = "a finite time, 0 or more"
    require(0 <= settle < np.inf, "settle", wanted, settle, "write e.g. settle=10")
    steps = step_count(solver, t)
    many = settle / solver.h
    fits = many + steps < 2**31
    wanted = f"shorter: at most 2^31 steps of {solver.h:g} are counted"
    require(fits, "settle", wanted, f"{settle:g}", "write e.g. settle=10")
    stride = max(1, min(round(every / solver.h), steps))
    return stride, max(1, round(steps / stride)), round(many / stride)


def _vectors(dynamics: Dynamics, x: np.ndarray, count: int | None, seed: int) -> jnp.ndarray:
    """Random orthonormal tangent vectors (k, n, d) at tokens x."""
    before = np.asarray(dynamics.space.frame(jnp.asarray(x)))
    n, _, m = before.shape
    if count is not None:
        require_whole("exponents", count, 1)
        require(count <= n * m, "exponents", f"at most {n * m}, all that there are", count)
    draw = np.random.default_rng(seed).normal(size=(n * m, count or n * m))
    parts = np.linalg.qr(draw)[0].T.reshape(-1, n, m)
    return jnp.asarray(np.einsum("iap,kip->kia", before, parts))


def _parts(rounds: int) -> list[int]:
    """Rounds in parts of at most two sizes, so that at most two are compiled."""
    size = max(1, rounds // BLOCKS)
    return [size] * (rounds // size) + ([rounds % size] if rounds % size else [])


def _dataset(
    stretched: np.ndarray, between: float, x: np.ndarray, recipe: dict[str, object]
) -> xr.Dataset:
    times = between * np.arange(1, len(stretched) + 1)
    estimate = np.cumsum(stretched, axis=0) / times[:, None]
    order = np.argsort(-estimate[-1], kind="stable")
    return xr.Dataset(
        {
            "exponent": (("mode",), estimate[-1][order], {"long_name": "Lyapunov exponent"}),
            "estimate": (("time", "mode"), estimate[:, order], {"long_name": "running average"}),
            "x": (("particle", "coord"), x, {"long_name": "tokens at the end"}),
        },
        {"time": ("time", times, {"long_name": "time of averaging"})},
        {"title": f"tokenflock: {recipe['dynamics']!r}", "recipe": recipes.dumps(recipe)},
    )

"""`simulate`: one system, followed in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.fast import Fast
from tokenflock.dynamics.neural_ode import NeuralODE
from tokenflock.dynamics.streamed import Streamed
from tokenflock.engines import single as engine
from tokenflock.engines.controlled import trajectory
from tokenflock.engines.course import Course
from tokenflock.engines.memory import on_device, require_memory
from tokenflock.engines.place import placed
from tokenflock.engines.tiled import MANY, for_many, law_refusal
from tokenflock.errors import (
    SimulationError,
    UserError,
    all_numbers,
    require,
    require_number,
    require_whole,
)
from tokenflock.events.event import Event
from tokenflock.observables.mean_cosine import MeanCosine
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import Observable, reads_cosines
from tokenflock.precision import cast, precision
from tokenflock.shapes import Tokens
from tokenflock.solvers.adaptive import Adaptive, Method
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.start import Start
from tokenflock.verbs.accuracy import (
    PAIRS,
    PILOT,
    TOLERANCE,
    gap_to_flow,
    judged,
    require_tolerance,
    schemes,
    warn_of_step,
)
from tokenflock.verbs.asked import asked
from tokenflock.verbs.ensemble import in_memory
from tokenflock.verbs.measure import measure
from tokenflock.verbs.options import Options
from tokenflock.verbs.overflow import remedies
from tokenflock.verbs.prepare import as_start, prepare
from tokenflock.verbs.resolution import resolving
from tokenflock.verbs.schedule import (
    When,
    check,
    check_kinds,
    fixed_step,
    schedule,
    when_to_look,
)


def simulate(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    t: float | None = None,
    *,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int | None = None,
    solver: Solver | None = None,
    observe: Observable | Sequence[Observable] = (),
    until: Event | None = None,
    seed: int = 0,
    dtype: str = "float64",
    coalesce: float | None = None,
    tolerance: float | None = TOLERANCE,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Follow one system of tokens and return its trajectory.

    Args:
      dynamics: the law of motion.
      start: a start law, or an array of tokens (n, d), unit vectors for a law on the sphere.
      t: final time; 30 unless given.
      times: the times to keep, instead of `frames` equal ones up to t. A solver of fixed step keeps
        multiples of its step.
      frames: how many equal times to keep, the start included; 201 unless given.
      solver: `Adaptive()` unless given; for noisy laws what a pilot of some systems finds to be
        accurate. A fixed step of your own is used, with a warning where it is too long.
      observe: observables to add to the result.
      until: an event that ends the run before t, located between steps (a layer map: at a layer).
      seed: of the start and the noise.
      dtype: 'float64' or 'float32'.
      coalesce: a distance, e.g. 1e-9, below which tokens that close in on each other become one
        heavy token; with it, times may be exponentially long.
      tolerance: of the error of time stepping, as a share of the largest value; None: unchecked.
      progress: called with the share of the work that is done.

    Returns a Dataset with `x` (time, particle, coord), `w` (particle), the observables, and in
    `attrs` the recipe; with `coalesce` also `heavy` (time), how many heavy tokens are left.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> flock.simulate(SelfAttention(beta=4.0), Uniform(n=32, d=2), t=30, seed=0).x.dims
    ('time', 'particle', 'coord')

    Two clusters at beta = 20 live for 10^16:

    >>> import numpy as np
    >>> from tokenflock.events import Consensus
    >>> pair = np.array([[1.0, 0.0], [np.cos(2.9), np.sin(2.9)]])
    >>> law, options = SelfAttention(beta=20.0), {"until": Consensus(), "coalesce": 1e-9}
    >>> print(f"{float(flock.simulate(law, pair, t=1e17, frames=2, **options).time[-1]):.6e}")
    2.865453e+16
    """
    observe = check_kinds(dynamics, observe, seed, solver=solver, until=until)
    start = as_start(dynamics, start)
    when = when_to_look(t, times, frames)
    chosen = _chosen(dynamics, start, when, solver, observe, until, seed, dtype, tolerance)
    setting = Setting(dynamics, start, when, chosen, until, observe, seed, dtype, coalesce)
    return setting.run(progress, tolerance)


@dataclass(frozen=True)
class Setting:
    """Everything that defines the run of one system."""

    dynamics: Dynamics
    start: Start
    when: When
    solver: Solver
    until: Event | None
    observe: Sequence[Observable]
    seed: int
    dtype: str
    coalesce: float | None = None
    noise: Sequence[int] | None = None  # the key of the noise, where it is not that of the seed

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        tolerance: float | None = None,
    ) -> xr.Dataset:
        """Follow the system; warn where its fixed step is too long for the tolerance."""
        check(self.dynamics, self.start, self.solver, *self.when)
        resolving(self.dtype, self.observe, self.until)
        _check_coalescing(self)
        times, frames = self.when.times, self.when.frames
        count = frames if times is None else len(times)
        _fits(self.dynamics, self.start, count, self.observe, self.dtype)
        steps, keep = schedule(self.solver, *self.when)
        blocks, heavy = [], []
        with precision(self.dtype), placed(*self.start.shape):
            law, x, w, key = prepare(self.dynamics, self.start, self.seed, self.dtype)
            law = for_many(law, x, w)
            begun = x
            if self.noise is not None:
                key = _key(self.noise)
            for block, left in self._blocks(law, x, w, key, steps, keep):
                _check_finite(block, self.dynamics, self.dtype)
                blocks.append(block)
                heavy.append(left)
                if progress:
                    progress(float(block[0][-1] / keep[-1]))
        result = _dataset(blocks, np.asarray(w), self, keep[-1])
        line = self._accuracy(begun, result, tolerance)
        result = result.assign_attrs(accuracy=line)
        if self.coalesce is not None:
            result["heavy"] = ("time", np.array(heavy), {"long_name": "heavy tokens"})
        return measure(result, self.observe) if self.observe else result

    def _accuracy(self, x: Tokens, result: xr.Dataset, tolerance: float | None) -> str:
        """Return in a line how accurate the run is, after a comparison with accurate steps."""
        solver = self.solver
        if isinstance(solver, Adaptive):
            rtol, atol = solver.tolerances(self.dtype)
            return f"time stepping: steps controlled to rtol {rtol:g}, atol {atol:g}"
        if solver.convention == "layer map":
            return "layer map: no error of time stepping"
        if self.dynamics.noisy and tolerance is not None:
            return f"time stepping: {solver!r}, compared with accurate steps by a pilot"
        if tolerance is None or self.dynamics.noisy or len(x) ** 2 > PAIRS:
            return "time stepping: not checked"
        times, w = result["time"].values, result["w"].values
        gap = gap_to_flow(self.dynamics, x, w, times, result["x"].values, tolerance)
        if not gap <= tolerance:
            warn_of_step(solver, "", tolerance)
        return f"time stepping: error {gap:.1g} of the tokens (tolerance {tolerance:g})"

    def _blocks(self, law, x, w, key, steps, keep) -> Iterator[tuple[engine.Frames, int]]:
        """Blocks of frames, and how many tokens are left at the end of each."""
        event, solver = cast(self.until, self.dtype), self.solver
        if isinstance(solver, Adaptive):
            course = Course(law, solver, x, w, keep, solver.tolerances(self.dtype), event)
            if self.coalesce is not None:
                from tokenflock.engines.coalescing import coalescing

                yield from coalescing(course, self.coalesce)
                return
            if law.noisy or not law.smooth or solver.method is Method.CHEBYSHEV:
                yield trajectory(course, key if law.noisy else None), len(w)
                return
            # diffrax takes half a second to import, which steps of one length need not wait for
            from tokenflock.engines.adaptive import adaptive

            blocks = adaptive(course)
        else:
            fixed = cast(fixed_step(solver), self.dtype)
            blocks = engine.fixed(law, fixed, x, w, steps, key, event)
        for block in blocks:
            yield block, len(w)

    def recipe(self, end: float) -> dict[str, Any]:
        """The same as data."""
        return {
            "verb": "simulate",
            "dynamics": self.dynamics,
            "start": self.start,
            "solver": self.solver,
            **self.when.recipe(),
            "t": end,
            "until": self.until,
            "observe": list(self.observe),
            "seed": self.seed,
            "dtype": self.dtype,
            "coalesce": self.coalesce,
            "noise": None if self.noise is None else [int(word) for word in self.noise],
        }


def _key(words: Sequence[int]) -> jax.Array:
    """The key of a noise as a recipe has it: two words of 32 bits."""
    pair = isinstance(words, (list, tuple)) and len(words) == 2
    require(pair, "noise", "two whole numbers", f"{words!r:.80}")
    for word in words:
        require_whole("noise", word, 0, 2**32 - 1)
    return jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32))


def _check_coalescing(setting: Setting) -> None:
    """Refuse heavy tokens where they would not mean what they should."""
    radius, solver = setting.coalesce, setting.solver
    if radius is None:
        return
    name = type(setting.dynamics).__name__
    require_number("coalesce", radius, "write e.g. coalesce=1e-9")
    require(
        setting.dynamics.exchangeable,
        "coalesce",
        f"left out, since {name} tells tokens apart",
        f"{radius:g}",
    )
    if not isinstance(solver, Adaptive) or solver.method is Method.CHEBYSHEV:
        raise UserError(f"coalesce needs the solver Adaptive(), whose steps may grow, got {solver}")
    wanted = "'float64', for exponentially long times"
    require(setting.dtype == "float64", "dtype", wanted, repr(setting.dtype))
    least = 10 * solver.tolerances(setting.dtype)[1]
    require(
        bool(least <= radius < 1),
        "coalesce",
        f"a distance from {least:g}, ten times the solver's atol, to 1",
        radius,
        "write e.g. coalesce=1e-9",
    )


def flow(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    t: float = 30.0,
    *,
    solver: Adaptive | None = None,
    seed: int = 0,
) -> Callable[[Sequence[float] | float], np.ndarray]:
    """One system as a function of time: `flow(...)(times)` gives tokens (times, n, d) anywhere in
    [0, t] (dense output).

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> flow(SelfAttention(), Uniform(n=4, d=3), t=5.0)([0.0, 1.0, 4.9]).shape
    (3, 4, 3)
    """
    from tokenflock.engines.adaptive import interpolant

    start = as_start(dynamics, start)
    solver = solver or Adaptive()
    dense = not dynamics.noisy and solver.method is not Method.CHEBYSHEV
    require(dense, "solver", "one of dense output, for a law without noise", repr(solver))
    check(dynamics, start, solver, t, None, 2)
    with precision("float64"), placed(*start.shape):
        law, x, w, _ = prepare(dynamics, start, seed, "float64")
        whole = np.array([0.0, t])
        inside = interpolant(Course(law, solver, x, w, whole, solver.tolerances("float64")))

    def evaluate(times: Sequence[float] | float) -> np.ndarray:
        wanted = np.atleast_1d(all_numbers("times", times))
        require(
            bool((wanted >= 0).all() and (wanted <= t).all()), "times", f"within [0, {t:g}]", times
        )
        with precision("float64"):
            found = np.asarray(inside(wanted))
        return found[0] if np.ndim(times) == 0 else found

    return evaluate


def _chosen(
    dynamics: Dynamics,
    start: Start,
    when: When,
    solver: Solver | None,
    observe: Sequence[Observable],
    until: Event | None,
    seed: int,
    dtype: str,
    tolerance: float | None,
) -> Solver:
    """Return the given solver or the default; with noise, warn where a given step is too long, or
    take the first that is accurate for a pilot of some systems.
    """
    require_tolerance(tolerance, solver is not None)
    if not dynamics.noisy:
        return solver or default_solver(dynamics)
    if solver is not None and (tolerance is None or isinstance(solver, Adaptive)):
        return solver
    names = {each.name for each in observe}
    more = [each for each in (MeanCosine(), MinimumCosine()) if each.name not in names]
    few = PILOT if solver is None else PILOT // 2
    options: Options = {"tolerance": tolerance, "dtype": dtype}
    system = dynamics, start, {}, few, when, solver, (*observe, *more), until, seed
    request = asked(*system, options)
    result = judged(in_memory(request), request.plan, stored=False)
    return solver or schemes(dynamics, request.plan.tolerance)[int(result["scheme"])]


def default_solver(dynamics: Dynamics) -> Solver:
    """Return the solver that suits a law without noise."""
    return Adaptive() if dynamics.smooth else Adaptive(method=Method.TSIT5)


def _fits(
    dynamics: Dynamics, start: Start, frames: int, observe: Sequence[Observable], dtype: str
) -> None:
    """Refuse a run that the memory cannot hold: its frames, its stages, its matrices of pairs."""
    n, d = (float(size) for size in start.shape)
    size = 8 if dtype == "float64" else 4
    kept = size * 2 * frames * (n * d + 2)
    what = f"a run of n = {n:,.0f} tokens in d = {d:,.0f} dimensions"
    require_memory(size * 16 * n * d, what, "take fewer tokens or dimensions", on_device())
    rows = isinstance(dynamics, (Fast, Streamed, NeuralODE))
    many = int(n) >= MANY
    if not rows and (not many or law_refusal(dynamics, start.weights(), int(d)) is not None):
        require_memory(
            size * n * n,
            f"{what}, each acting on each,",
            "take fewer tokens, or a law that never forms the matrix of pairs, such as Fast() or"
            " Streamed()",
            on_device(),
        )
    require_memory(
        kept, f"{what} with {frames:,} frames", "keep fewer frames, or take fewer tokens"
    )
    if any(
        reads_cosines(observable) and not (many and observable.strips) for observable in observe
    ):
        require_memory(
            size * n * n,
            f"an observable of all pairs of n = {n:,.0f} tokens",
            "observe less",
            on_device(),
        )


def _check_finite(block: engine.Frames, dynamics: Dynamics, dtype: str) -> None:
    times, frames = block
    bad = ~np.isfinite(frames).all(axis=(1, 2))
    if bad.any():
        raise SimulationError(
            f"{dynamics!r} left the numbers at t = {times[np.argmax(bad)]:g} in {dtype}: it"
            f" overflowed or blew up; {remedies(dynamics, dtype)}"
        )


def _dataset(blocks, w, setting: Setting, end: float) -> xr.Dataset:
    times = np.concatenate([block[0] for block in blocks])
    tokens = np.concatenate([block[1] for block in blocks])
    solver, until, recipe = setting.solver, setting.until, setting.recipe(float(end))
    recipe["versions"] = recipes.versions("jax", "diffrax")
    attrs = {
        "title": f"tokenflock: {setting.dynamics!r}",
        "convention": solver.convention,
        "recipe": recipes.dumps(recipe),
    }
    if until is not None:
        attrs["stopped"] = (
            f"{until!r} at t = {times[-1]:.10g}" if times[-1] < end else f"{until!r} did not happen"
        )
    coords = {"time": ("time", times, {"long_name": "time"})}
    if isinstance(solver, FixedStep) and solver.convention == "layer map":
        coords["layer"] = (
            "time",
            np.round(times / solver.h).astype(int),
            {"long_name": "number of layers applied"},
        )
    variables = {
        "x": (("time", "particle", "coord"), tokens, {"long_name": "tokens"}),
        "w": (("particle",), w, {"long_name": "weights"}),
    }
    return xr.Dataset(variables, coords, attrs)

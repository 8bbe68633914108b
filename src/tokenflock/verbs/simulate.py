"""`simulate`: one system, followed in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
from tokenflock.engines.memory import on_device, require_memory
from tokenflock.engines.place import placed
from tokenflock.errors import SimulationError, require
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable, reads_cosines
from tokenflock.precision import cast, precision
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.euler import Euler
from tokenflock.solvers.euler_maruyama import EulerMaruyama
from tokenflock.solvers.solver import Solver
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start
from tokenflock.verbs.measure import measure
from tokenflock.verbs.schedule import check, check_kinds, schedule


def simulate(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    t: float = 30.0,
    *,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int = 201,
    solver: Solver | None = None,
    observe: Sequence[Observable] = (),
    until: Event | None = None,
    seed: int = 0,
    dtype: str = "float64",
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Follow one system of tokens and return its trajectory.

    Args:
      dynamics: the law of motion.
      start: a start law, or an array of tokens (n, d).
      t: final time.
      times: the times to keep, instead of `frames` equal ones. A solver of fixed step keeps
        multiples of its step.
      frames: how many times to keep, the start included.
      solver: `Adaptive()` unless given (`EulerMaruyama` for noisy laws, `Euler` for discontinuous
        ones).
      observe: observables to add to the result.
      until: an event that ends the run before t.
      seed: of the start and the noise.
      dtype: 'float64' or 'float32'.
      progress: called with the share of the work that is done.

    Returns a Dataset with `x` (time, particle, coord), `w` (particle), the observables, and in
    `attrs` the recipe.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> flock.simulate(SelfAttention(beta=4.0), Uniform(n=32, d=2), t=30, seed=0).x.dims
    ('time', 'particle', 'coord')
    """
    observe = check_kinds(dynamics, observe, seed, solver=solver, until=until)
    start = start if isinstance(start, Start) else Given(start)
    solver = solver or default_solver(dynamics)
    check(dynamics, start, solver, t, times, frames)
    _fits(dynamics, start, frames if times is None else len(times), observe, dtype)
    steps, keep = schedule(solver, t, times, frames)
    blocks = []
    with precision(dtype), placed(*start.shape):
        law, x, w, key = prepare(dynamics, start, seed, dtype)
        for block in _blocks(law, solver, x, w, key, steps, keep, until, dtype):
            _check_finite(block, dynamics, dtype)
            blocks.append(block)
            if progress:
                progress(float(block[0][-1] / keep[-1]))
    recipe = {"verb": "simulate", "dynamics": dynamics, "start": start, "solver": solver}
    recipe |= {"t": float(keep[-1]), "frames": frames, "until": until, "observe": list(observe)}
    recipe |= {"times": None if times is None else [float(value) for value in times]}
    recipe |= {"seed": seed, "dtype": dtype}
    result = _dataset(blocks, np.asarray(w), solver, recipe, until, keep[-1])
    return measure(result, observe) if observe else result


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
    start = start if isinstance(start, Start) else Given(start)
    solver = solver or Adaptive()
    check(dynamics, start, solver, t, None, 2)
    with precision("float64"), placed(*start.shape):
        law, x, w, _ = prepare(dynamics, start, seed, "float64")
        inside = engine.interpolant(law, solver, x, w, t, solver.tolerances("float64"))

    def evaluate(times: Sequence[float] | float) -> np.ndarray:
        wanted = np.atleast_1d(np.asarray(times, dtype=float))
        require(
            bool((wanted >= 0).all() and (wanted <= t).all()), "times", f"within [0, {t:g}]", times
        )
        with precision("float64"):
            found = np.asarray(inside(wanted))
        return found[0] if np.ndim(times) == 0 else found

    return evaluate


def default_solver(dynamics: Dynamics) -> Solver:
    """The solver that suits a law of motion."""
    if dynamics.noisy:
        return EulerMaruyama(h=0.01)
    return Adaptive() if dynamics.smooth else Euler(h=0.01)


def prepare(dynamics: Dynamics, start: Start, seed: int, dtype: str):
    """(dynamics, tokens, weights, key of the noise) as JAX values of one precision. Call inside
    `precision(dtype)`.

    Tokens are drawn in float32 and then cast, so that both precisions start from the same ones.
    """
    drawing, noise = jax.random.split(jax.random.key(seed))
    with precision("float32"):
        x = np.asarray(start.draw(drawing))
    law = cast(dynamics, dtype)
    x = law.space.project(jnp.asarray(dynamics.space.admit(x).astype(dtype)))
    return law, x, jnp.asarray(start.weights(), dtype), noise


def _fits(
    dynamics: Dynamics, start: Start, frames: int, observe: Sequence[Observable], dtype: str
) -> None:
    """Refuse a run that the memory cannot hold: its frames, its stages, its matrices of pairs."""
    n, d = (float(one) for one in start.shape)
    size = 8 if dtype == "float64" else 4
    kept = size * 2 * frames * (n * d + 2)
    what = f"a run of n = {n:,.0f} tokens in d = {d:,.0f} dimensions"
    require_memory(size * 16 * n * d, what, "take fewer tokens or dimensions", on_device())
    if not isinstance(dynamics, (Fast, Streamed, NeuralODE)):
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
    if any(map(reads_cosines, observe)):
        require_memory(
            size * n * n,
            f"an observable of all pairs of n = {n:,.0f} tokens",
            "observe less",
            on_device(),
        )


def _blocks(law, solver, x, w, key, steps, keep, until, dtype) -> Iterator[engine.Frames]:
    event = cast(until, dtype)
    if steps is None:
        return engine.adaptive(law, solver, x, w, keep, solver.tolerances(dtype), event)
    return engine.fixed(law, cast(solver, dtype), x, w, steps, key, event)


def _check_finite(block: engine.Frames, dynamics: Dynamics, dtype: str) -> None:
    times, frames = block
    bad = ~np.isfinite(frames).all(axis=(1, 2))
    if bad.any():
        raise SimulationError(
            f"{dynamics!r} left the numbers at t = {times[np.argmax(bad)]:g} in {dtype}: it"
            " overflowed or blew up. Take a smaller beta or step, dtype='float64', or, for"
            " unnormalised attention, the clock 'peak'"
        )


def _dataset(blocks, w, solver, recipe, until, end: float) -> xr.Dataset:
    times = np.concatenate([block[0] for block in blocks])
    tokens = np.concatenate([block[1] for block in blocks])
    recipe["versions"] = recipes.versions("jax", "diffrax")
    attrs = {
        "title": f"tokenflock: {recipe['dynamics']!r}",
        "convention": solver.convention,
        "recipe": recipes.dumps(recipe),
    }
    if until is not None:
        attrs["stopped"] = (
            f"{until!r} at t = {times[-1]:.10g}" if times[-1] < end else f"{until!r} did not happen"
        )
    coords = {"time": ("time", times, {"long_name": "time"})}
    if solver.convention == "layer map":
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

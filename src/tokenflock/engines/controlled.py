"""Many systems with steps of controlled length, each system with steps of its own, in float64.

There are two kinds of step. An explicit pair of diffrax (`Method.TSIT5` and others) is good where
tokens move smoothly. A stabilised step (`Method.CHEBYSHEV`) takes as many short stages as the
fastest decay needs: s stages reach about 0.65 s^2 over its rate, where s stages of a pair reach
about s. Unnormalised attention pulls clusters together at rates like e^beta: at beta = 10, t = 20,
an explicit pair needs 460,000 evaluations of the velocity and the stabilised step 14,000.

Noise enters at the ends of equal intervals; between them the drift is followed by controlled steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.blocks import measured_by
from tokenflock.engines.course import Course
from tokenflock.engines.job import PASSAGE, Job, Parts, Paths, Values, fill
from tokenflock.engines.lanes import in_groups
from tokenflock.engines.single import Frames
from tokenflock.engines.tiled import for_many
from tokenflock.errors import SimulationError
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array, Scalar, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive, Method

GROUP = 8  # systems that run side by side on a CPU; of fewer, the last one fills up
MANY = 1024  # systems that run side by side on a GPU
SAFETY = 1.3  # by which the estimate of the fastest rate is enlarged
DAMPING = 2 / 13  # of the stabilised step, as in the original code
HOPELESS = 2  # times the stages allowed, which the rest of a run would take at the least
BISECTIONS = 45  # to locate an event within a step

Force = Callable[[Scalar, Tokens], Tokens]
Follow = Callable[..., Any]  # (state, end, number of its first step of noise, how many) -> state


class Tableau(NamedTuple):
    """The coefficients of an embedded Runge-Kutta pair, as arrays."""

    a: np.ndarray  # (stages, stages), strictly lower triangular
    b: np.ndarray
    error: np.ndarray  # difference of the two rows b
    c: np.ndarray
    order: int


class _Tokens(Observable):
    """The tokens themselves."""

    dims: ClassVar[tuple[str, ...]] = ("particle", "coord")
    name: ClassVar[str] = "x"

    def measure(self, x: Tokens, w: Weights) -> Array:
        return x


class State(NamedTuple):
    """A system between two steps."""

    t: Array
    x: Tokens
    v: Tokens  # velocity at x
    h: Array  # length of the next step
    mode: Tokens  # unit vector near the mode that decays fastest
    rate: Array  # of that mode
    spent: Array  # steps of a pair, or stages, so far
    ok: Array  # False: given up, or not finite
    passage: Passage


class Passage(NamedTuple):
    """The step in which each level of an event is reached: NaN while it is not."""

    t: Array  # (levels,), where the step begins
    h: Array  # (levels,), its length
    x: Array  # (levels, n, d), tokens where it begins


def run(
    job: Job,
    x: np.ndarray,
    keys: jax.Array,
    swept: list[Any],
    intervals: int = 1,
    tell: Callable[[np.ndarray, Values], None] = lambda done, values: None,
) -> tuple[Values, np.ndarray]:
    """Return observables of every system at every frame, and which systems reached the end. All is
    computed in float64; noise is drawn in the precision of the job.

    Noise enters `intervals` times in each step of noise of the solver, whose increments on one
    Brownian path do not depend on `intervals`. Passages are times, not steps. A system that was
    given up has NaN from then on.
    """
    x, count = np.asarray(x), len(x)
    cpu = jax.default_backend() == "cpu"
    # few sizes, so that few are compiled
    size = min(MANY, count) if count == 1 or not cpu else GROUP
    key_data = np.asarray(jax.random.key_data(keys))
    results: Values = {}
    finished = np.zeros(count, bool)

    def group(first: int) -> None:
        who = np.minimum(np.arange(first, first + size), count - 1)
        with precision("float64"):
            own = jax.random.wrap_key_data(jnp.asarray(key_data[who]))
            mine = [jnp.asarray(np.asarray(values)[who], "float64") for values in swept]
            tokens = jnp.asarray(x[who], "float64")
            values, ok = _run(job, tokens, own, mine, intervals)
        finished[first : first + size] = ok[: count - first]
        for name, array in values.items():
            room = results.setdefault(name, np.empty((count, *array.shape[1:])))
            room[first : first + size] = array[: count - first]

    in_groups(group, count, size, lambda done: tell(done, results))
    return results, finished


def trajectory(course: Course, key: jax.Array | None) -> Frames:
    """Return the times and tokens of one system; with an event the last frame is that."""
    x, times = np.asarray(course.x), course.times
    values = trajectories(course, x[None], None if key is None else key[None])
    passage = np.nan if course.until is None else values[PASSAGE][0, -1]
    if np.isnan(passage):
        return times, values["x"][0].astype(x.dtype)
    if passage == 0:
        return times[:1], x[None]
    until = replace(course, times=np.append(times[times < passage], passage), until=None)
    return trajectory(until, key)


def trajectories(course: Course, x: np.ndarray, keys: jax.Array | None = None) -> Values:
    """Return the tokens "x" (systems, frames, n, d) of systems that begin at x (systems, n, d), and
    the times of the event where there is one.
    """
    law, solver, w, times = course.law, course.solver, np.asarray(course.w), course.times
    keys = jax.random.split(jax.random.key(0), len(x)) if keys is None else keys
    steps, dtype = np.arange(len(times)), str(x.dtype)
    job = Job(law, solver, (_Tokens(),), w, steps, (), dtype, False, course.until, times)
    values, reached = run(job, x, keys, [])
    if not reached.all():
        raise SimulationError(stiff(law, solver))
    return values


def stiff(law: Dynamics, solver: Any) -> str:
    """Return what to say of a law that controlled steps could not follow to the end."""
    other = "" if solver.method is Method.CHEBYSHEV else "Adaptive(method='chebyshev'), "
    return (
        f"{type(law).__name__} is too stiff for {solver!r}: it did not reach the end; take {other}a"
        " shorter time, a smaller beta, or a larger max_steps"
    )


def _run(
    job: Job, x: Array, keys: Array, swept: list[Any], intervals: int
) -> tuple[Values, np.ndarray]:
    """Return the observables of one group of systems, and which of them reached the end."""
    solver = job.solver
    if not isinstance(solver, Adaptive):
        raise TypeError(f"steps of controlled length need Adaptive, got {solver!r}")
    # the numbers of the solver are passed as such, so that others compile nothing anew
    limits = jnp.asarray([*solver.tolerances(job.dtype), solver.max_steps])
    parts = cast((job.law, None, job.observables), "float64")
    until, pair = cast(job.until, "float64"), _pair(solver.method)
    w = jnp.asarray(job.w, "float64")
    draws = np.ceil(np.diff(job.times) / solver.noise_step - 1e-9).astype(int)
    when = jnp.asarray(job.times), jnp.asarray(draws)
    noise = intervals, job.dtype
    values, state = _frames(parts, job.paths, x, w, keys, swept, when, until, pair, limits, noise)
    named = {each.name: np.asarray(value) for each, value in zip(job.observables, values)}
    if until is not None:
        found = _located(parts, job.paths, w, swept, state.passage, until, pair, limits)
        named[PASSAGE] = np.asarray(found)
    return named, np.asarray(state.ok)


@eqx.filter_jit
def _frames(
    parts: Parts,
    paths: Paths,
    x: Array,
    w: Weights,
    keys: Array,
    swept: list[Array],
    when: tuple[Array, Array],
    until: Event | None,
    pair: Tableau | None,
    limits: Array,
    noise: tuple[int, str],
) -> tuple[list[Any], State]:
    """Return the observables (systems, frames, ...) and the last states of some systems.

    `when` holds the times of the frames and the numbers of steps of noise between them.
    """
    times, steps = when

    def system(x: Tokens, key: Array, values: list[Any]) -> tuple[list[Any], State]:
        law, _, observables = fill(parts, paths, values)
        law = for_many(law, x, w)
        look = measured_by(law)

        def force(t: Scalar, x: Tokens) -> Tokens:
            return law.velocity(t, x, w)

        def measure(state: State) -> list[Array]:
            seen = [jnp.asarray(look(each, state.x, w)) for each in observables]
            return [jnp.where(state.ok, value, jnp.nan) for value in seen]

        follow = _follow(law, force, w, until, pair, limits, times)
        if law.noisy:
            follow = _shaken(law, force, w, until, follow, key, *noise)

        def frame(state: State, ends: tuple[Array, Array, Array]) -> tuple[State, list[Array]]:
            state = follow(state, *ends)
            return state, measure(state)

        state = _first(law, force, x, w, times[0], until, pair is None, limits)
        firsts = jnp.cumsum(steps) - steps
        state, later = jax.lax.scan(frame, state, (times[1:], firsts, steps))
        start = measure(state._replace(x=x, ok=jnp.asarray(True)))
        joined = [jnp.concatenate([a[None].astype(b.dtype), b]) for a, b in zip(start, later)]
        return joined, state

    return jax.vmap(system)(x, keys, swept)


def _shaken(
    law: Dynamics,
    force: Force,
    w: Weights,
    until: Event | None,
    follow: Follow,
    key: Array,
    intervals: int,
    dtype: str,
) -> Follow:
    """Return a function that advances a state to a time, with noise at the end of each interval."""

    def advance(state: State, end: Array, first: Array, count: Array) -> State:
        begin, kicks = state.t, count * intervals
        width = (end - begin) / kicks

        def interval(k: Array, state: State) -> State:
            state = follow(state, jnp.where(k + 1 < kicks, begin + (k + 1) * width, end))
            t, x, passage = state.t, state.x, state.passage
            own = jax.random.fold_in(key, first + k // intervals)
            kick = _kick(law, t, x.astype(dtype), w, own, k % intervals, intervals)
            y = law.space.retract(x, law.space.tangent(x, jnp.sqrt(width) * kick))
            if until is not None:
                passage = _note(passage, until.margins(law, t, y, w) <= 0, t, 0 * t, y)
            return state._replace(x=y, v=force(t, y), passage=passage)

        return jax.lax.fori_loop(0, kicks, interval, state)

    return advance


def _first(
    law: Dynamics,
    force: Force,
    x: Tokens,
    w: Weights,
    t: Array,
    until: Event | None,
    stiff: bool,
    limits: Array,
) -> State:
    """Return the state at time 0. The first step moves tokens by about a hundredth."""
    v = force(t, x)
    zero = jnp.zeros(())
    levels = 0 if until is None else len(until.margins(law, t, x, w))
    never = jnp.full(levels, jnp.nan)
    passage = Passage(never, never, jnp.zeros((levels, *x.shape)))
    if until is not None:
        passage = _note(passage, until.margins(law, t, x, w) <= 0, t, zero, x)
    mode, rate = jax.random.normal(jax.random.key(0), x.shape), zero
    if stiff:
        again = lambda _, pair: _fastest(force, t, x, v, pair[0])  # noqa: E731
        mode, rate = jax.lax.fori_loop(0, 16, again, (mode / jnp.linalg.norm(mode), zero))
    h = 0.01 / (jnp.max(jnp.linalg.norm(v, axis=-1)) + 1e-6)
    return State(t, x, v, h, mode, rate, jnp.asarray(0), jnp.isfinite(v).all(), passage)


def _follow(
    law: Dynamics,
    force: Force,
    w: Weights,
    until: Event | None,
    pair: Tableau | None,
    limits: Array,
    times: Array,
) -> Follow:
    """Return a function that advances a state to a time by controlled steps."""
    rtol, atol, most = limits
    order = 2 if pair is None else pair.order

    def advance(state: State, end: Array, *_: Array) -> State:
        def running(state: State) -> Array:
            return (state.t < end) & state.ok

        def step(state: State) -> State:
            rest = end - state.t
            mode, rate = state.mode, state.rate
            if pair is None:
                mode, rate = _fastest(force, state.t, state.x, state.v, mode)
            # equal steps up to the end, so that the last one is not tiny
            count = jnp.ceil(0.999 * rest / state.h)
            t = jnp.where(count > 1, state.t + rest / count, end)
            h = t - state.t
            bound = jnp.maximum(rate, state.rate)
            y, v, difference, spent = _step(law, force, pair, state, h, bound)
            size = atol + rtol * jnp.linalg.norm(state.x, axis=-1)
            error = jnp.where(w > 0, jnp.linalg.norm(difference, axis=-1) / size, 0)
            error = jnp.max(error)
            fine = error <= 1  # False for NaN
            factor = jnp.where(
                jnp.isfinite(error), jnp.clip(0.85 * error ** (-1 / (order + 1)), 0.1, 4), 0.1
            )
            longer = h * factor
            # a step that was cut short by its end does not make the next one shorter
            longer = jnp.where(fine & (h < state.h), jnp.maximum(longer, state.h), longer)
            passage = state.passage
            if until is not None and not law.noisy:
                over = fine & (until.margins(law, t, y, w) <= 0)
                passage = _note(passage, over, state.t, h, state.x)
            total = state.spent + spent
            # frames bound the steps that are left from above, and so what they cost from below
            left = jnp.sqrt(1.54 * rate * (times[-1] - t) * jnp.sum(times > t))
            hopeless = (total >= most) | (left > HOPELESS * most) | (h <= 0)
            ok = ~hopeless | (fine & (t >= times[-1]))
            kept = zip((t, y, v), (state.t, state.x, state.v))
            t, x, v = (jnp.where(fine, new, old) for new, old in kept)
            return State(t, x, v, longer, mode, rate, total, ok, passage)

        return jax.lax.while_loop(running, step, state)

    return advance


def _fastest(force: Force, t: Array, x: Tokens, v: Tokens, mode: Tokens) -> tuple[Tokens, Array]:
    """Return the next iterate of the power method for the derivative of the velocity, and its
    rate.
    """
    small = 1e-7
    change = (force(t, x + small * mode) - v) / small
    length = jnp.linalg.norm(change)
    return jnp.where(length > 0, change / jnp.where(length > 0, length, 1), mode), length


def _step(
    law: Dynamics, force: Force, pair: Tableau | None, state: State, h: Array, rate: Array
) -> tuple[Tokens, Tokens, Tokens, Array]:
    """Return (tokens after a step, their velocity, the estimated error, what it cost)."""
    t, x, v = state.t, state.x, state.v
    if pair is None:
        stages = jnp.maximum(jnp.ceil(jnp.sqrt(1 + 1.54 * SAFETY * h * rate)), 2).astype(int)
        y = law.space.retract(x, _chebyshev(force, t, x, v, h, stages) - x)
        after = force(t + h, y)
        return y, after, 0.8 * (x - y) + 0.4 * h * (v + after), stages + 1
    k: Any = jnp.zeros((len(pair.b), *x.shape)).at[0].set(v)
    a, c = jnp.asarray(pair.a), jnp.asarray(pair.c)

    def stage(number: Array, k: Any) -> Any:
        return k.at[number].set(force(t + c[number] * h, x + h * jnp.tensordot(a[number], k, 1)))

    k = jax.lax.fori_loop(1, len(pair.b), stage, k)
    y = law.space.retract(x, h * jnp.tensordot(jnp.asarray(pair.b), k, 1))
    error = h * jnp.tensordot(jnp.asarray(pair.error), k, 1)
    return y, force(t + h, y), error, jnp.asarray(1)


def _chebyshev(force: Force, t: Array, x: Tokens, v: Tokens, h: Array, stages: Array) -> Tokens:
    """Return the tokens after a stabilised step of order 2.

    Stages follow the recursion of Chebyshev polynomials, shifted and damped so that |R(z)| < 1
    for -0.65 stages^2 < z < 0. Source: RKC of Sommeijer, Shampine and Verwer, J. Comput. Appl.
    Math. 88 (1997), (2.3) to (2.8).
    """
    s = stages.astype(x.dtype)
    w0 = 1 + DAMPING / s**2
    angle = s * jnp.arccosh(w0)
    root = jnp.sqrt(w0**2 - 1)
    w1 = jnp.sinh(angle) * root**2 / (jnp.cosh(angle) * s * root - w0 * jnp.sinh(angle))
    b = 1 / (2 * w0) ** 2  # of the first two stages
    one, zero = jnp.ones_like(w0), jnp.zeros_like(w0)

    def stage(_: Array, held: Any) -> Any:
        (y0, y), (b0, b1), (c0, c), (p0, p) = held
        # values and derivatives of the Chebyshev polynomial at w0
        T = 2 * w0 * p[0] - p0[0]
        D = 2 * w0 * p[1] - p0[1] + 2 * p[0]
        DD = 2 * w0 * p[2] - p0[2] + 4 * p[1]
        b2 = DD / D**2
        mu, nu, step = 2 * w0 * b2 / b1, -b2 / b0, 2 * w1 * b2 / b1
        shift = 1 - p[0] * b1
        now = force(t + c * h, y)
        new = mu * y + nu * y0 + (1 - mu - nu) * x + h * step * (now - shift * v)
        return (y, new), (b1, b2), (c, mu * c + nu * c0 + step * (1 - shift)), (p, (T, D, DD))

    held = (
        (x, x + h * w1 * b * v),
        (b, b),
        (zero, w1 * b),
        ((one, zero, zero), (w0, one, zero)),
    )
    return jax.lax.fori_loop(2, stages + 1, stage, held)[0][1]


def _kick(
    law: Dynamics, t: Array, x: Tokens, w: Weights, key: Array, place: Array, intervals: int
) -> Tokens:
    """Return the Gaussian increment of one interval of a step, for a unit of time.

    The step draws Z = shake(key). Its `intervals` equal parts get N_j = Z / sqrt(intervals) + G_j -
    mean(G), with G_j drawn from keys folded from its own. These are independent and normal, and
    sum to sqrt(intervals) Z: all are increments of one Brownian path.
    """
    whole = law.shake(t, x, w, key)
    if intervals == 1:
        return whole
    fine = jax.vmap(jax.random.fold_in, (None, 0))(key, 1 + jnp.arange(intervals))
    parts = jax.vmap(lambda each: law.shake(t, x, w, each))(fine)
    return whole / intervals**0.5 + parts[place] - parts.mean(axis=0)


def _note(passage: Passage, over: Array, t: Array, h: Array, x: Tokens) -> Passage:
    """Return the passages with levels added that are reached in the step from (t, x)."""
    new = over & jnp.isnan(passage.t)
    return Passage(
        jnp.where(new, t, passage.t),
        jnp.where(new, h, passage.h),
        jnp.where(new[:, None, None], x, passage.x),
    )


@eqx.filter_jit
def _located(
    parts: Parts,
    paths: Paths,
    w: Weights,
    swept: list[Array],
    passage: Passage,
    until: Event,
    pair: Tableau | None,
    limits: Array,
) -> Array:
    """Return the time at which each level is reached, (systems, levels): within its step, by
    shorter steps from where that begins.
    """

    def system(passage: Passage, values: list[Array]) -> Array:
        law, _, _ = fill(parts, paths, values)

        def force(t: Scalar, x: Tokens) -> Tokens:
            return law.velocity(t, x, w)

        def level(number: Array, t: Array, h: Array, x: Tokens) -> Array:
            start = _first(law, force, x, w, t, None, pair is None, limits)

            def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
                low, high = bounds
                middle = (low + high) / 2
                y, *_ = _step(law, force, pair, start, middle * h, 2 * start.rate)
                over = until.margins(law, t + middle * h, y, w)[number] <= 0
                return jnp.where(over, low, middle), jnp.where(over, middle, high)

            bounds = jnp.zeros(()), jnp.ones(())
            share = jax.lax.fori_loop(0, BISECTIONS, halve, bounds)[1]
            return t + jnp.where(h > 0, share * h, 0)

        return jax.vmap(level)(jnp.arange(len(passage.t)), *passage)

    return jax.vmap(system)(passage, swept)


def _pair(method: Method) -> Tableau | None:
    """Return the coefficients of a pair of diffrax; None for the stabilised step."""
    if method is Method.CHEBYSHEV:
        return None
    import diffrax  # half a second, which the stabilised step need not wait for

    tableau = getattr(diffrax, method.value).tableau
    stages = len(tableau.b_sol)
    a = np.zeros((stages, stages))
    for number, row in enumerate(tableau.a_lower, 1):
        a[number, :number] = row
    c = np.append(0.0, tableau.c)
    return Tableau(a, np.asarray(tableau.b_sol), np.asarray(tableau.b_error), c, method.order)

"""One system, every frame kept: fixed steps by `scan`, adaptive steps by diffrax.

A run is cut into blocks of frames, always the same ones, so that a caller can show progress between
them and the numbers do not depend on whether anyone watches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
from jaxtyping import Float, Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines._patience import Patient
from tokenflock.engines.passing import happened, locate
from tokenflock.errors import SimulationError
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import FixedStep

Frames = tuple[np.ndarray, np.ndarray]  # times (k,), tokens (k, n, d)
Told = tuple[np.ndarray, ...]  # of each frame: tokens, whether over, tokens before, steps
BLOCKS = 20
STEPS = 1e6  # of a few tokens in one compiled call


@eqx.filter_jit
def _fixed_block(
    law: Dynamics,
    solver: FixedStep,
    x: Tokens,
    w: Weights,
    first: Array,
    key: Key[Array, ""],
    until: Event | None,
    strides: Array,
) -> tuple[Float[Array, "k n d"], Array, Float[Array, "k n d"], Array]:
    """Frames after strides[0], strides[0] + strides[1], ... further steps; whether the run is over
    at each; tokens one step before it; and the steps that were made.

    With an event every step is looked at, and the one at which it has happened is the last.
    """

    def advance(x, step):
        t = step.astype(x.dtype) * solver.h
        return solver.step(law, t, x, w, jax.random.fold_in(key, step)), step + 1

    def once(state):
        (x, step, _, _), left = state
        y, step = advance(x, step)
        over = jnp.array(False)
        if until is not None:
            over = happened(until, law, solver, step, y, w)[-1]
        return (y, step, x, over), left - 1

    def frame(state, stride):
        if until is None:
            (x, step, before, over) = state
            x, step = jax.lax.fori_loop(0, stride, lambda _, now: advance(*now), (x, step))
        else:
            state, _ = jax.lax.while_loop(
                lambda now: ~now[0][3] & (now[1] > 0), once, (state, stride)
            )
            x, step, before, over = state
        return (x, step, before, over), (x, over, before, step)

    return jax.lax.scan(frame, (x, first, x, jnp.array(False)), strides)[1]


@eqx.filter_jit
def _located(
    law: Dynamics,
    solver: FixedStep,
    ends: tuple[Tokens, Tokens],
    w: Weights,
    step: Array,
    key: Key[Array, ""],
    until: Event,
) -> tuple[Array, Tokens]:
    own = jax.random.fold_in(key, step)
    return locate(until, law, solver, step, ends, w, own, -1)


def fixed(
    law: Dynamics,
    solver: FixedStep,
    x: Tokens,
    w: Weights,
    steps: np.ndarray,
    key: Key[Array, ""],
    until: Event | None,
) -> Iterator[Frames]:
    """Frames at the given numbers of steps (the first is 0: the start), block by block.

    The last one is the event, if it comes, located within its step.
    """
    h = float(solver.h)
    yield np.zeros(1), np.asarray(x)[None]
    if until is not None and over_at_once(until, law, x, w):
        return
    size = math.ceil((len(steps) - 1) / BLOCKS)
    for first in range(1, len(steps), size):
        block = steps[first : first + size]
        strides = np.diff(np.concatenate([[steps[first - 1]], block]))
        strides = np.pad(
            strides, (0, size - len(block))
        )  # every block has one shape, so it compiles once

        def run(x, begin, strides):
            begin, strides = jnp.asarray(begin, jnp.int32), jnp.asarray(strides, jnp.int32)
            told = _fixed_block(law, solver, x, w, begin, key, until, strides)
            return tuple(np.asarray(values) for values in told)

        told = _in_calls(run, x, int(steps[first - 1]), strides, _most_steps(*x.shape))
        frames, over, before, reached = (values[: len(block)] for values in told)
        if until is not None and over.any():
            k = int(np.argmax(over))
            ends, last = (jnp.asarray(before[k]), jnp.asarray(frames[k])), int(reached[k]) - 1
            share, event = _located(law, solver, ends, w, jnp.asarray(last, jnp.int32), key, until)
            times = np.append(block[:k], last + float(share)) * h
            yield times, np.concatenate([frames[:k], np.asarray(event)[None]])
            return
        yield block * h, frames
        x = jnp.asarray(frames[-1])


def over_at_once(until: Event, law: Dynamics, x: Tokens, w: Weights) -> bool:
    """Whether an event has happened before anything moved."""
    return bool(until.margin(law, jnp.zeros((), x.dtype), x, w) <= 0)


def _most_steps(n: int, d: int) -> int:
    """Steps of one compiled call, which takes a second or so: between two calls a run can be
    stopped.
    """
    return max(1, int(STEPS / (1 + n * n * d / 1000)))


def _in_calls(
    run: Callable[..., Told], x: Tokens, begin: int, strides: np.ndarray, most: int
) -> Told:
    """What `_fixed_block` tells of each stride: in one call where it is short.

    Else in many calls of the same compiled function, and so with the same numbers: the first stride
    of a call is part of a long one, the others are zero.
    """
    if strides.sum() <= most:
        return run(x, begin, strides)
    parts = []
    for stride in strides:
        for done in range(0, max(int(stride), 1), most):
            part = np.zeros_like(strides)
            part[0] = min(most, stride - done)
            frame, over, *rest = (values[0] for values in run(x, begin + done, part))
            x = jnp.asarray(frame)
            if over:
                break
        begin += int(stride)
        parts.append((frame, over, *rest))
        if over:
            break
    return tuple(np.stack(values) for values in zip(*parts))


@eqx.filter_jit
def _adaptive_block(
    law: Dynamics,
    solver: Adaptive,
    x: Tokens,
    w: Weights,
    begin: Array,
    times: jax.Array,
    until: Event | None,
    tolerances: Array,
    dense: int,
) -> diffrax.Solution:
    event = None
    if until is not None:
        event = diffrax.Event(
            lambda t, y, args, **_: until.margin(law, t, law.space.project(y), w),
            optimistix.Bisection(rtol=1e-10, atol=1e-10),
            direction=False,
        )
    saves = [diffrax.SubSaveAt(ts=times), diffrax.SubSaveAt(t1=True)]
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: law.velocity(jnp.asarray(t), y, w)),
        getattr(diffrax, solver.method.value)(),
        begin,
        times[-1],
        None,
        x,
        saveat=diffrax.SaveAt(dense=True) if dense else diffrax.SaveAt(subs=saves),
        stepsize_controller=Patient(
            diffrax.PIDController(tolerances[0], tolerances[1]), solver.max_steps
        ),
        max_steps=dense or solver.max_steps,
        event=event,
        throw=False,
    )


def adaptive(
    law: Dynamics,
    solver: Adaptive,
    x: Tokens,
    w: Weights,
    times: np.ndarray,
    tolerances: tuple[float, float],
    until: Event | None,
) -> Iterator[Frames]:
    """Frames at the given times (the first is the start), block by block.

    The last one is the event, if it comes.
    """
    yield times[:1], np.asarray(x)[None]
    if until is not None and over_at_once(until, law, x, w):
        return
    size = math.ceil((len(times) - 1) / BLOCKS)
    limits = jnp.asarray(tolerances, x.dtype)
    for first in range(1, len(times), size):
        block = times[first : first + size]
        padded = np.pad(block, (0, size - len(block)), mode="edge")
        begin = jnp.asarray(times[first - 1], x.dtype)
        solution = _adaptive_block(
            law, _method(solver), x, w, begin, jnp.asarray(padded, x.dtype), until, limits, 0
        )
        over = bool(solution.result == diffrax.RESULTS.event_occurred)
        _check(solution, solver, block, over, (law, begin, x, w))
        (frames, last), ends = _saved(law, solution)
        frames = frames[: len(block)]
        if over:
            stop = float(ends[0])
            keep = int(np.sum(block < stop))
            yield np.append(block[:keep], stop), np.concatenate([frames[:keep], last])
            return
        yield block, frames
        x = jnp.asarray(last[0])


def interpolant(
    law: Dynamics,
    solver: Adaptive,
    x: Tokens,
    w: Weights,
    t: float,
    tolerances: tuple[float, float],
    max_steps: int = 65_536,
) -> Callable[[np.ndarray], Array]:
    """The whole trajectory on [0, t] as a function of time (dense output)."""
    limits = jnp.asarray(tolerances, x.dtype)
    end = jnp.asarray([t], x.dtype)
    solution = _adaptive_block(
        law, _method(solver), x, w, jnp.zeros((), x.dtype), end, None, limits, max_steps
    )
    _check(solution, solver, np.array([t]), False, (law, jnp.zeros((), x.dtype), x, w))
    return lambda times: law.space.project(jax.vmap(solution.evaluate)(times))


def _saved(
    law: Dynamics, solution: diffrax.Solution
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """(tokens at the times asked for, tokens where it ended) and the time of the end."""
    if solution.ys is None or solution.ts is None:
        raise ValueError("a solution that was asked to save nothing")
    frames, last = (np.asarray(law.space.project(x)) for x in solution.ys)
    return (frames, last), np.asarray(solution.ts[1])


def _method(solver: Adaptive) -> Adaptive:
    """The solver without its tolerances, which are passed as numbers so that other ones compile
    nothing anew.
    """
    return Adaptive(method=solver.method, max_steps=solver.max_steps)


def _check(
    solution: diffrax.Solution,
    solver: Adaptive,
    block: np.ndarray,
    over: bool,
    here: tuple[Dynamics, Array, Tokens, Weights],
) -> None:
    """Turn a failure of the solver into a sentence that contains the remedy.

    `here` is where the block began: (law, time, tokens, weights).
    """
    if over or solution.result == diffrax.RESULTS.successful:
        return
    law, begin, x, w = here
    name = type(law).__name__
    if not bool(jnp.isfinite(law.velocity(begin, x, w)).all()):
        raise SimulationError(
            f"the velocity of {name} is not a number at t = {float(begin):g}: a parameter is NaN or"
            " infinite, or the force overflows; take finite parameters or a smaller beta"
        )
    steps = int(solution.stats["num_steps"])
    if solution.result == diffrax.RESULTS.dt_min_reached:
        raise SimulationError(
            f"{name} is too stiff for the adaptive solver: after {steps} steps its steps are so"
            f" short that {solver.max_steps} more would not reach t = {block[-1]:g}; take the layer"
            " map Layer(h=0.1), a solver of fixed step such as RK4(h=0.01), a smaller beta, or a"
            " looser rtol"
        )
    raise SimulationError(
        f"the adaptive solver gave up before t = {block[-1]:g} after {steps} steps: raise max_steps"
        f" (now {solver.max_steps}), loosen rtol, or use a solver of fixed step such as RK4(h=0.01)"
    )

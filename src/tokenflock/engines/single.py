"""One system, every frame kept: steps of one length by `scan`. Adaptive ones are in `adaptive`.

A run is cut into blocks of frames, always the same ones, so that a caller can show progress between
them and the numbers do not depend on whether anyone watches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.passing import happened, locate
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Tokens, Weights
from tokenflock.solvers.solver import FixedStep

Frames = tuple[np.ndarray, np.ndarray]  # times (k,), tokens (k, n, d)
Account = tuple[np.ndarray, ...]  # of each frame: tokens, whether over, tokens before, steps
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
    run: Callable[..., Account], x: Tokens, begin: int, strides: np.ndarray, most: int
) -> Account:
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

"""Many systems at once through XLA: `vmap` over systems, `scan` over time, on any device.

Systems run in slots, a block of frames at a time. A system that has settled (consensus is for ever)
leaves its slot to the next one in the queue, so the shape of the work never changes and nothing is
compiled twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines.job import Finished, Job, Parts, Paths, Values, advance, fill
from tokenflock.errors import SimulationError, overflowed
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import on_sphere
from tokenflock.shapes import Array
from tokenflock.spaces import Sphere

BLOCKS = 12


@eqx.filter_jit
def _block(
    parts: Parts,
    paths: Paths,
    x: Array,
    w: Array,
    keys: Array,
    swept: list[Any],
    first: Array,
    strides: Array,
) -> tuple[Array, list[Array], Array]:
    """A block of frames of every slot: (tokens at its end, observables (slots, frames, ...), least
    cosine at its end).

    Where tokens are no numbers any more the least cosine is NaN.
    """

    def system(x, key, values, first):
        law, solver, observables = fill(parts, paths, values)
        step_on = advance(solver, law, w, key, x.dtype)
        look = (
            on_sphere
            if isinstance(law.space, Sphere)
            else lambda observable, x, w: observable.measure(x, w)
        )

        def frame(carry, stride):
            carry = jax.lax.fori_loop(0, stride, lambda _, carry: step_on(carry), carry)
            return carry, [look(observable, carry[0], w) for observable in observables]

        (x, _), values = jax.lax.scan(frame, (x, first), strides)
        sound = jnp.isfinite(jnp.where(w[:, None] > 0, x, 0)).all()
        return x, values, jnp.where(sound, MinimumCosine().measure(x, w), jnp.nan)

    return jax.vmap(system)(x, keys, swept, first)


@eqx.filter_jit
def _start(parts: Parts, paths: Paths, x: Array, w: Array, swept: list[Any]) -> list[Array]:
    """Observables at time zero."""

    def observe(x, values):
        return [observable.measure(x, w) for observable in fill(parts, paths, values)[2]]

    return jax.vmap(observe)(x, swept)


def run(
    job: Job,
    x: Any,
    keys: jax.Array,
    swept: list[Any],
    slots: int | None = 256,
    finished: Finished | None = None,
) -> Values:
    """Observables of every system at every frame.

    With `slots`, so many systems at a time and the results on the host: what a CPU likes; then
    `finished` is told of every system that is done. Without, all at once and the results on the
    device.
    """
    names = [observable.name for observable in job.observables]
    if slots is None:
        return dict(zip(names, _whole(job, x, keys, swept)))

    def tell(done: np.ndarray, values: list[np.ndarray]) -> None:
        if finished is not None and len(done):
            finished(done, dict(zip(names, values)))

    results = _queue(job, np.asarray(x), keys, swept, min(slots, len(x)), tell)
    return dict(zip(names, results))


def _whole(job: Job, x: Any, keys: jax.Array, swept: list[Any]) -> list[jax.Array]:
    """Every system at once, from the first frame to the last."""
    x, w, swept = (
        jnp.asarray(x),
        jnp.asarray(job.w, job.dtype),
        [jnp.asarray(values) for values in swept],
    )
    start = _start(job.parts, job.paths, x, w, swept)
    first, strides = jnp.zeros(len(x), jnp.int32), jnp.asarray(job.strides, jnp.int32)
    _, later, least = _block(job.parts, job.paths, x, w, keys, swept, first, strides)
    _check_sound(job, least)
    return [jnp.concatenate([a[:, None], b], axis=1) for a, b in zip(start, later)]


def _queue(
    job: Job,
    x: np.ndarray,
    keys: jax.Array,
    swept: list[Any],
    slots: int,
    tell: Callable[[np.ndarray, list[np.ndarray]], None],
) -> list[np.ndarray]:
    """Systems in slots, a block of frames at a time.

    Who is finished or settled makes room for the next.
    """
    frames = len(job.steps)
    strides, even = _blocks(job)
    blocks, size = strides.shape
    firsts = np.concatenate([[0], np.cumsum(strides.sum(axis=1))]).astype(np.int32)
    swept, key_data = (
        [np.asarray(values) for values in swept],
        np.asarray(jax.random.key_data(keys)),
    )
    w = jnp.asarray(job.w, job.dtype)
    results = [_open(value, frames) for value in _starts(job, x, w, swept, slots)]
    state = _Slots(x, slots)
    while state.busy.any():
        who, ids = state.busy, np.where(state.busy, state.ids, 0)
        block = (
            0 if even else int(state.block[who][0])
        )  # uneven strides: all slots are in the same block
        keys_now = jax.random.wrap_key_data(jnp.asarray(key_data[ids]))
        first = jnp.asarray(firsts[np.where(who, state.block, 0)])
        tokens, values, least = _block(
            job.parts,
            job.paths,
            state.x,
            w,
            keys_now,
            [values[ids] for values in swept],
            first,
            jnp.asarray(strides[block]),
        )
        _check_sound(job, np.asarray(least)[who])
        state.record(
            who,
            np.asarray(tokens),
            [np.asarray(value) for value in values],
            np.asarray(least),
            results,
            size,
            frames,
        )
        tell(state.clear(blocks, job.delta, results, size), results)
        if even or not state.busy.any():
            state.fill(x)
    return results


def _starts(
    job: Job, x: np.ndarray, w: Any, swept: list[np.ndarray], slots: int
) -> list[np.ndarray]:
    """Observables of every system at time zero, in packets of one shape: compiled once, and the
    same numbers however many systems there are.
    """
    parts = []
    for first in range(0, len(x), slots):
        who = np.minimum(np.arange(first, first + slots), len(x) - 1)
        values = _start(job.parts, job.paths, x[who], w, [numbers[who] for numbers in swept])
        parts.append([np.asarray(value)[: len(x) - first] for value in values])
    return [np.concatenate(values) for values in zip(*parts)]


def _check_sound(job: Job, least: Any) -> None:
    """A count would hide tokens that are no numbers any more."""
    if bool(jnp.isnan(least).any()):
        raise SimulationError(overflowed(type(job.law).__name__, job.dtype))


def _blocks(job: Job) -> tuple[np.ndarray, bool]:
    """(strides of each block (blocks, size), whether all are alike).

    A last, longer block costs less than another shape.
    """
    count = len(job.steps) - 1
    least = math.ceil(count / BLOCKS)
    size = min(range(least, least + 4), key=lambda size: -count % size)
    blocks = math.ceil(count / size)
    even = bool((job.strides == job.strides[0]).all())
    spare = job.strides[0] if even else 0
    return (
        np.pad(job.strides, (0, blocks * size - count), constant_values=spare)
        .reshape(blocks, size)
        .astype(np.int32),
        even,
    )


def _open(start: np.ndarray, frames: int) -> np.ndarray:
    values = np.empty((start.shape[0], frames, *start.shape[1:]), start.dtype)
    values[:, 0] = start
    return values


class _Slots:
    """Which system sits in which slot, and how far it has come."""

    def __init__(self, x: np.ndarray, slots: int) -> None:
        self.ids = np.arange(slots)
        self.block = np.zeros(slots, int)
        self.x = np.array(x[:slots])
        self.least = np.full(slots, -1.0)
        self.next = slots

    @property
    def busy(self) -> np.ndarray:
        """Which slots hold a system."""
        return self.ids >= 0

    def record(
        self,
        who: np.ndarray,
        tokens: np.ndarray,
        values: list[np.ndarray],
        least: np.ndarray,
        results: list[np.ndarray],
        size: int,
        frames: int,
    ) -> None:
        """Write a block of frames to the results."""
        self.x[who] = tokens[who]
        self.least[who] = least[who]
        for slot in np.flatnonzero(who):
            a = 1 + self.block[slot] * size
            b = min(a + size, frames)
            for target, value in zip(results, values):
                target[self.ids[slot], a:b] = value[slot, : b - a]
        self.block[who] += 1

    def clear(
        self, blocks: int, delta: float | None, results: list[np.ndarray], size: int
    ) -> np.ndarray:
        """Take out what is finished or settled, and say which systems these are.

        The last values of the settled stand for the rest.
        """
        settled = np.zeros_like(self.busy) if delta is None else self.least >= 1 - delta
        over = np.flatnonzero(self.busy & (settled | (self.block >= blocks)))
        done = self.ids[over]
        for slot in over:
            reached = 1 + self.block[slot] * size
            for target in results:
                target[self.ids[slot], reached:] = target[
                    self.ids[slot], min(reached, target.shape[1]) - 1
                ]
            self.ids[slot] = -1
        return done

    def fill(self, x: np.ndarray) -> None:
        """Let the next systems into the free slots."""
        for slot in np.flatnonzero(~self.busy)[: len(x) - self.next]:
            self.ids[slot], self.block[slot], self.x[slot], self.least[slot] = (
                self.next,
                0,
                x[self.next],
                -1.0,
            )
            self.next += 1

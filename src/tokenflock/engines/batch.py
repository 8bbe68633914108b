"""Many systems at once through XLA: `vmap` over systems, `scan` over time, on any device.

Systems run in slots, a block of frames at a time. A system that has settled (consensus is for ever)
leaves its slot to the next one in the queue, so the shape of the work never changes and nothing is
compiled twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import PASSAGE, Finished, Job, Parts, Paths, Values, advance, fill
from tokenflock.engines.passing import happened, locate
from tokenflock.errors import SimulationError, overflowed
from tokenflock.events.event import Event
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import Observable, by_strips, on_sphere
from tokenflock.shapes import Array
from tokenflock.spaces import Sphere

BLOCKS = 12


def measured(observable: Observable, x: Array, w: Array) -> Array:
    """What an observable says of any tokens."""
    return observable.measure(x, w)


class Tiles(NamedTuple):
    """How the law listens by tiles, where it does; the same for all systems."""

    peaked: bool
    interpret: bool
    round: int = 1
    "a number of steps that divides those of every frame"

    def law(self, law: Dynamics) -> Dynamics:
        """The law that does so."""
        from tokenflock.engines.tiled import tiled  # not for a CPU to wait for

        return tiled(law, self.peaked, self.interpret)


Passage = tuple[Array, Array]  # step (slots, levels) that reached each level, -1; tokens before it


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
    until: Event | None,
    passed: Array,
    tiles: Tiles | None = None,
) -> tuple[Array, list[Array], Array, Passage]:
    """A block of frames of every slot: (tokens at its end, observables (slots, frames, ...), least
    cosine at its end, what was passed in it).

    Where tokens are no numbers any more the least cosine is NaN. `passed` (slots, levels) says
    which levels of the event have been reached before.
    """

    def system(x, key, values, first, passed):
        law, solver, observables = fill(parts, paths, values)
        step_on = advance(solver, law if tiles is None else tiles.law(law), w, key, x.dtype)
        look = _look(law, tiles)

        def once(_, carry):
            now, passage = carry
            later = step_on(now)
            if until is not None:
                over = happened(until, law, solver, later[1], later[0], w)
                passage = _note(passage, over & ~passed, now)
            return later, passage

        def frame(carry, stride):
            carry = _repeat(once, stride, 1 if tiles is None else tiles.round, carry)
            return carry, [look(observable, carry[0][0], w) for observable in observables]

        nothing = (
            jnp.full(passed.shape, -1, jnp.int32),
            jnp.zeros((*passed.shape, *x.shape), x.dtype),
        )
        ((x, _), passage), values = jax.lax.scan(frame, ((x, first), nothing), strides)
        sound = jnp.isfinite(jnp.where(w[:, None] > 0, x, 0)).all()
        least = MinimumCosine().measure(x, w) if tiles is None else jnp.zeros((), x.dtype)
        return x, values, jnp.where(sound, least, jnp.nan), passage

    return jax.vmap(system)(x, keys, swept, first, passed)


def _repeat(once: Callable, count: Array, whole: int, carry: Any) -> Any:
    """`once`, so many times, in rounds of a `whole` number of times that divides it: within a round
    a GPU goes on without asking the host.
    """
    if whole == 1:
        return jax.lax.fori_loop(0, count, once, carry)

    def around(_, carry):
        return jax.lax.fori_loop(0, whole, once, carry)

    return jax.lax.fori_loop(0, count // whole, around, carry)


def _look(law: Dynamics, tiles: Tiles | None) -> Callable[[Observable, Array, Array], Array]:
    """How an observable is measured on tokens of this law."""
    if tiles is not None:
        return by_strips
    if isinstance(law.space, Sphere):
        return on_sphere
    return measured


def _note(passage: Passage, over: Array, now: tuple[Array, Array]) -> Passage:
    """The step in which each level is first reached, and the tokens before it."""
    (at, before), (x, step) = passage, now
    new = over & (at < 0)
    return jnp.where(new, step, at), jnp.where(new[:, None, None], x, before)


@eqx.filter_jit
def _shares(
    parts: Parts,
    paths: Paths,
    w: Array,
    keys: Array,
    swept: list[Any],
    until: Event,
    passage: Passage,
) -> Array:
    """The share of its step at which each level is reached, (slots, levels)."""

    def system(key, values, at, before):
        law, solver, _ = fill(parts, paths, values)
        shares = []
        for level in range(len(at)):
            after = advance(solver, law, w, key, before.dtype)((before[level], at[level]))[0]
            own = jax.random.fold_in(key, at[level])
            ends = before[level], after
            shares.append(locate(until, law, solver, at[level], ends, w, own, level)[0])
        return jnp.stack(shares)

    return jax.vmap(system)(keys, swept, *passage)


@eqx.filter_jit
def _start(
    parts: Parts,
    paths: Paths,
    x: Array,
    w: Array,
    swept: list[Any],
    until: Event | None,
    tiles: Tiles | None = None,
) -> list[Array]:
    """Observables at time zero, and which levels of the event are reached there."""
    look = measured if tiles is None else by_strips

    def observe(x, values):
        law, solver, observables = fill(parts, paths, values)
        over = (
            jnp.zeros(0, bool)
            if until is None
            else happened(until, law, solver, jnp.asarray(0), x, w)
        )
        return [*(look(observable, x, w) for observable in observables), over]

    return jax.vmap(observe)(x, swept)


def run(
    job: Job,
    x: Any,
    keys: jax.Array,
    swept: list[Any],
    slots: int | None = 256,
    finished: Finished | None = None,
    tiles: Tiles | None = None,
) -> Values:
    """Observables of every system at every frame, and the passage of its event (in steps).

    With `slots`, so many systems at a time and the results on the host: what a CPU likes; then
    `finished` is told of every system that is done. Without, all at once and the results on the
    device.
    """
    names = [observable.name for observable in job.observables]

    def named(values: list[Any], steps: np.ndarray) -> Values:
        passage = {} if job.until is None else {PASSAGE: steps}
        return dict(zip(names, values)) | passage

    if slots is None:
        return named(*_whole(job, x, keys, swept, tiles))

    def tell(done: np.ndarray, values: list[np.ndarray], steps: np.ndarray) -> None:
        if finished is not None and len(done):
            finished(done, named(values, steps))

    return named(*_queue(job, np.asarray(x), keys, swept, min(slots, len(x)), tell))


def _whole(
    job: Job, x: Any, keys: jax.Array, swept: list[Any], tiles: Tiles | None
) -> tuple[list[jax.Array], np.ndarray]:
    """Every system at once, from the first frame to the last."""
    x, w, swept = (
        jnp.asarray(x),
        jnp.asarray(job.w, job.dtype),
        [jnp.asarray(values) for values in swept],
    )
    *start, over = _start(job.parts, job.paths, x, w, swept, job.until, tiles)
    first, strides = jnp.zeros(len(x), jnp.int32), jnp.asarray(job.strides, jnp.int32)
    _, later, least, passage = _block(
        job.parts, job.paths, x, w, keys, swept, first, strides, job.until, over, tiles
    )
    _check_sound(job, least)
    steps = np.where(np.asarray(over), 0.0, np.nan)
    _locate(job, w, keys, swept, passage, steps)
    return [jnp.concatenate([a[:, None], b], axis=1) for a, b in zip(start, later)], steps


def _locate(
    job: Job, w: Array, keys: Array, swept: list[Any], passage: Passage, steps: np.ndarray
) -> None:
    """Write to `steps` (slots, levels) where within its step each new level was reached."""
    at = np.asarray(passage[0])
    if job.until is None or not (at >= 0).any():
        return
    shares = np.asarray(_shares(job.parts, job.paths, w, keys, swept, job.until, passage))
    steps[at >= 0] = (at + shares.astype(np.float64))[at >= 0]


def _queue(
    job: Job,
    x: np.ndarray,
    keys: jax.Array,
    swept: list[Any],
    slots: int,
    tell: Callable[[np.ndarray, list[np.ndarray], np.ndarray], None],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Systems in slots, a block of frames at a time.

    Who is finished or settled makes room for the next.
    """
    strides, even = _blocks(job)
    blocks, size = strides.shape
    firsts = np.concatenate([[0], np.cumsum(strides.sum(axis=1))]).astype(np.int32)
    swept, key_data = (
        [np.asarray(values) for values in swept],
        np.asarray(jax.random.key_data(keys)),
    )
    w = jnp.asarray(job.w, job.dtype)
    *start, over = _starts(job, x, w, swept, slots)
    results = [_open(value, len(job.steps)) for value in start]
    steps = np.where(over, 0.0, np.nan)
    state = _Slots(x, slots)
    while state.busy.any():
        who, ids = state.busy, np.where(state.busy, state.ids, 0)
        block = (
            0 if even else int(state.block[who][0])
        )  # uneven strides: all slots are in the same block
        keys_now = jax.random.wrap_key_data(jnp.asarray(key_data[ids]))
        mine = [values[ids] for values in swept]
        here = steps[ids]
        tokens, values, least, passage = _block(
            job.parts,
            job.paths,
            state.x,
            w,
            keys_now,
            mine,
            jnp.asarray(firsts[np.where(who, state.block, 0)]),
            jnp.asarray(strides[block]),
            job.until,
            jnp.asarray(~np.isnan(here)),
        )
        _check_sound(job, np.asarray(least)[who])
        _locate(job, w, keys_now, mine, passage, here)
        steps[ids[who]] = _by_the_end(here[who], job)
        told = np.asarray(tokens), [np.asarray(value) for value in values], np.asarray(least)
        state.record(who, *told, results, size)
        free = _free(job, state.least, here)
        tell(state.clear(blocks, free, results, size), results, steps)
        if even or not state.busy.any():
            state.fill(x)
    return results, steps


def _free(job: Job, least: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Which slots need not go on: all that is asked of their systems is known.

    Observables are final where theory says so, the event where it has happened.
    """
    passed = np.asarray(~np.isnan(steps).any(axis=1))
    if not job.observables:
        return passed
    return passed & (least >= 1 - job.delta) if job.delta is not None else np.zeros_like(passed)


def _by_the_end(steps: np.ndarray, job: Job) -> np.ndarray:
    """Passages without those of a last block that is longer than the run."""
    return np.where(steps <= job.steps[-1], steps, np.nan)


def _starts(
    job: Job, x: np.ndarray, w: Any, swept: list[np.ndarray], slots: int
) -> list[np.ndarray]:
    """Observables of every system at time zero, in packets of one shape: compiled once, and the
    same numbers however many systems there are.
    """
    parts = []
    for first in range(0, len(x), slots):
        who = np.minimum(np.arange(first, first + slots), len(x) - 1)
        mine = [numbers[who] for numbers in swept]
        values = _start(job.parts, job.paths, x[who], w, mine, job.until)
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
    ) -> None:
        """Write a block of frames to the results."""
        self.x[who] = tokens[who]
        self.least[who] = least[who]
        for slot in np.flatnonzero(who):
            a = 1 + self.block[slot] * size
            for target, value in zip(results, values):
                b = min(a + size, target.shape[1])
                target[self.ids[slot], a:b] = value[slot, : b - a]
        self.block[who] += 1

    def clear(
        self, blocks: int, free: np.ndarray, results: list[np.ndarray], size: int
    ) -> np.ndarray:
        """Take out what is finished or `free` to go, and say which systems these are.

        The last values of the settled stand for the rest.
        """
        over = np.flatnonzero(self.busy & (free | (self.block >= blocks)))
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

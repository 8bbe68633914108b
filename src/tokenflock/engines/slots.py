"""Systems in slots, a block of frames at a time: what a CPU likes.

A system that has settled (consensus is for ever) leaves its slot to the next one in the queue, so
the shape of the work never changes and nothing is compiled twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines.blocks import check_sound, first_look, note_passages, run_block
from tokenflock.engines.job import Job

BLOCKS = 12


def queue(
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
        tokens, values, least, passage = run_block(
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
        check_sound(job, np.asarray(least)[who])
        note_passages(job, w, keys_now, mine, passage, here)
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
        values = first_look(job.parts, job.paths, x[who], w, mine, job.until)
        parts.append([np.asarray(value)[: len(x) - first] for value in values])
    return [np.concatenate(values) for values in zip(*parts)]


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
        self.least = np.empty(slots)
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
            self.ids[slot], self.block[slot], self.x[slot] = self.next, 0, x[self.next]
            self.next += 1

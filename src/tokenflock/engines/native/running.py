"""A job run by its compiled loop: groups of systems, a block of frames at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from tokenflock.engines import peaks
from tokenflock.engines.job import Finished, Job, Values
from tokenflock.engines.lanes import in_groups
from tokenflock.engines.native.machine import Function, compiled, lanes
from tokenflock.engines.native.program import Loop, Output, shared, translate
from tokenflock.errors import SimulationError, UserError, overflowed

_PROGRAMS: dict[Any, Loop] = {}
SMALL = 30.0  # logits up to this: sums of their exponentials, and these, are numbers
BLOCKS = 12  # looks at whether systems have settled


def run(job: Job, x: np.ndarray, swept: list[Any], finished: Finished | None = None) -> Values:
    """Observables of every system at every frame; `finished` is told of each group."""
    x = np.asarray(x, np.float32)
    swept = [np.asarray(values, np.float32) for values in swept]
    count, n, d = x.shape
    shapes = [values.shape[1:] for values in swept]
    program = translated(job, shapes, n, d, small(job, swept))
    function = compiled(program.text)
    frames, wanted = len(job.steps), program.outputs[: len(job.observables)]
    results = [np.empty((count, frames, *output.lengths(n)), output.dtype) for output in wanted]
    values = {observable.name: result for observable, result in zip(job.observables, results)}

    def group(first: int) -> None:
        who = np.minimum(np.arange(first, first + program.lanes), count - 1)
        made = _Group(job, program, function, x[who], [numbers[who] for numbers in swept])
        for result, value in zip(results, made.values()):
            result[first : first + program.lanes] = value[: count - first]

    def tell(done: np.ndarray) -> None:
        if finished is not None:
            finished(done, values)

    in_groups(group, count, program.lanes, tell)
    return values


def small(job: Job, swept: Sequence[np.ndarray] | None = None) -> bool:
    """Whether all logits of a job are: unit vectors that ask and answer by themselves, and a beta
    that is not large. Of swept numbers that are not told the best is thought.
    """
    told = [np.zeros(1)] * len(job.paths) if swept is None else swept
    beta = [None if b is None else np.abs(b) for b in peaks.betas(job, told)]
    try:
        peaked = peaks.is_peaked(job.law, beta, job.w)
    except UserError:  # no Block
        return False
    return peaked and all(float(np.max(b)) <= SMALL for b in beta if b is not None)


def translated(job: Job, shapes: Sequence[tuple[int, ...]], n: int, d: int, gentle: bool) -> Loop:
    """The program of a job, made once for all jobs that differ in numbers only."""
    leaves, tree = jax.tree_util.tree_flatten(job.parts)
    kinds = tuple(
        (leaf.shape, str(leaf.dtype)) if eqx.is_inexact_array(leaf) else repr(leaf)
        for leaf in leaves
    )
    key = (tree, kinds, job.paths, tuple(shapes), job.delta is None, n, d, gentle)
    if key not in _PROGRAMS:
        _PROGRAMS[key] = translate(job, shapes, n, d, lanes(), gentle)
    return _PROGRAMS[key]


def _room(vectors: int, lanes: int) -> np.ndarray:
    """(vectors, lanes) words, the first on a cache line of its own."""
    raw = np.empty(vectors * lanes + 16, np.float32)
    skip = -raw.ctypes.data // 4 % 16
    return raw[skip : skip + vectors * lanes].reshape(vectors, lanes)


def _sideways(values: np.ndarray) -> np.ndarray:
    """(systems, ...) numbers as vectors of systems."""
    count = values.shape[0]
    made = _room(int(np.prod(values.shape[1:], dtype=int)), count)
    made[:] = values.reshape(count, -1).T
    return made


class _Group:
    """As many systems as a vector has lanes, and the memory they need."""

    def __init__(
        self, job: Job, program: Loop, function: Function, x: np.ndarray, swept: list[np.ndarray]
    ) -> None:
        self.job, self.program, self.function, self.n = job, program, function, x.shape[1]
        self.x, self.w = _sideways(x), np.ascontiguousarray(job.w, np.float32)
        self.given = [*shared(job), *map(_sideways, swept)]
        self.rooms = [
            _room(room.vectors(self.n), program.lanes if room.own else 1) for room in program.rooms
        ]
        self.seen = [self._series(output, len(job.steps)) for output in program.outputs]
        self.strides = np.concatenate([[0], job.strides]).astype(np.int64)

    def values(self) -> list[np.ndarray]:
        """Every observable as (systems, frames, ...)."""
        job, frames = self.job, len(self.job.steps)
        given, rooms, seen = map(_addresses, (self.given, self.rooms, self.seen))
        apart = np.array([series[0].nbytes for series in self.seen], np.uint64)
        blocks = 1 if job.delta is None else BLOCKS
        size = -(-frames // blocks)
        for at in range(0, frames, size):
            there, end = seen + np.uint64(at) * apart, min(at + size, frames)
            self.function(
                self.x.ctypes.data,
                self.w.ctypes.data,
                given.ctypes.data,
                rooms.ctypes.data,
                there.ctypes.data,
                self.n,
                self.strides[at:].ctypes.data,
                end - at,
                int(job.steps[max(at - 1, 0)]),
            )
            if not np.isfinite(self.x.reshape(self.n, -1)[self.w > 0]).all():
                raise SimulationError(overflowed(type(job.law).__name__, job.dtype))
            if job.delta is not None and self.seen[-1][end - 1].min() >= 1 - job.delta:
                for series in self.seen:
                    series[end:] = series[end - 1]
                break
        return [
            self._told(output, series) for output, series in zip(self.program.outputs, self.seen)
        ]

    def _series(self, output: Output, frames: int) -> np.ndarray:
        wide = self.program.lanes if output.room.own else 1
        size = output.room.vectors(self.n)
        return _room(frames * size, wide).reshape(frames, size, wide)

    def _told(self, output: Output, series: np.ndarray) -> np.ndarray:
        words = series if output.word == "float" else series.view(np.int32)
        values = np.broadcast_to(words, (*series.shape[:2], self.program.lanes))
        values = np.moveaxis(values, -1, 0).reshape(
            self.program.lanes, len(series), *output.lengths(self.n)
        )
        return values.astype(output.dtype)


def _addresses(arrays: list[np.ndarray]) -> np.ndarray:
    """Where arrays lie."""
    return np.array([array.ctypes.data for array in arrays] or [0], np.uint64)

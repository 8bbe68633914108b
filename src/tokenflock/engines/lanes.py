"""A small compiled loop for CPUs: sixteen systems side by side in the lanes of a vector register
(numba).

It serves one family only, self-attention and unnormalised attention under the layer map with the
pair density, because phase diagrams are made of it. The laws of the catalogue hold it to the one
equation: it must agree with `batch`. Each pair of tokens costs one exponential, not two; a group of
systems whose pairs have all met is done.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np

from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.engines.job import Finished, Job, Values, follow
from tokenflock.observables.pair_density import PairDensity
from tokenflock.solvers.layer import Layer


def refusal(job: Job, random_matrices: bool, n: int) -> str | None:
    """Why this engine cannot do a job, or None if it can."""
    if job.until is not None:
        return "the compiled loop looks at frames only, and not for events"
    if find_spec("numba") is None:
        return "the compiled loop needs numba (pip install numba)"
    if random_matrices or type(job.law) not in (SelfAttention, Unnormalised):
        return "the compiled loop serves SelfAttention and Unnormalised only"
    if type(job.solver) is not Layer:
        return "the compiled loop knows the solver Layer only"
    if [type(observable) for observable in job.observables] != [PairDensity]:
        return "the compiled loop observes the pair density only"
    if job.dtype != "float32":
        return "the compiled loop works in float32"
    if n < 2:
        return "the compiled loop needs two tokens or more"
    if any(path not in ((0, "beta"), (1, "h"), (2, 0, "delta")) for path in job.paths):
        return "the compiled loop sweeps beta, h and delta only"
    return None


def run(
    job: Job, x: np.ndarray, swept: list[np.ndarray], finished: Finished | None = None
) -> Values:
    """Pair densities of every system at every frame; `finished` is told of each group."""
    from tokenflock.engines._lane_loop import BLOCK, LANES, loop

    x = np.asarray(x)
    count, n, d = x.shape
    tall = -(-n // BLOCK) * BLOCK
    w, steps = np.asarray(job.w, np.float32), np.asarray(job.steps, np.int64)
    of_systems = _numbers(job, swept, count)
    normalised = isinstance(job.law, SelfAttention)
    results = np.empty((count, len(steps)), np.float32)

    def group(first: int) -> None:
        who = np.minimum(
            np.arange(first, first + LANES), count - 1
        )  # the last group is filled up with its last system
        X, V, E, M, densities = (
            _vectors(size, LANES)
            for size in (tall * d, n * (d + 1), tall * tall, BLOCK * (d + 1), len(steps))
        )
        X[: n * d] = x[who].reshape(LANES, n * d).T
        X[n * d :] = 0
        numbers = tuple(values[who] for values in of_systems)
        loop(X, (V, E, M), w, numbers, normalised, steps, job.delta is not None, densities)
        results[first : first + LANES] = densities.T[: count - first]

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    values = {job.observables[0].name: results}
    firsts = range(0, count, LANES)
    with ThreadPoolExecutor(cores) as threads:
        try:
            for first, _ in zip(firsts, threads.map(group, firsts)):
                if finished is not None:
                    finished(np.arange(first, min(first + LANES, count)), values)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # those that wait need not run
            raise
    return values


def _vectors(count: int, lanes: int) -> np.ndarray:
    """(count, lanes) numbers, each vector on a cache line of its own."""
    raw = np.empty((count + 1) * lanes, np.float32)
    skip = -raw.ctypes.data // raw.itemsize % lanes
    return raw[skip : skip + count * lanes].reshape(count, lanes)


def _numbers(job: Job, swept: list[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
    """Of every system: slope and offset of the exponent to base two, h with the sign of V, least
    cosine of a pair that met.
    """
    beta, h, delta = (
        np.broadcast_to(
            swept[job.paths.index(path)] if path in job.paths else float(follow(job.parts, path)),
            count,
        )
        for path in ((0, "beta"), (1, "h"), (2, 0, "delta"))
    )
    shift = (
        job.law.shift if isinstance(job.law, Unnormalised) else beta > 0
    )  # softmax does not see it; it must not overflow
    slope = beta / np.log(2)
    sign = -1 if follow(job.parts, (0, "repulsive")) else 1
    return tuple(
        np.asarray(values, np.float32) for values in (slope, -slope * shift, sign * h, 1 - delta)
    )

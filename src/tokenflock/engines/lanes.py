"""Compiled loops for CPUs: several systems side by side in the lanes of a vector register.

Two kinds. A loop written by hand serves one family, self-attention and unnormalised
attention under the layer map with the pair density, because phase diagrams are made of it: each
pair of tokens costs one exponential, not two; a group of systems whose pairs have all met is done.
For all else the loop is made of the equations of the law, the solver and the observables themselves
(`native`), where these are sums over tokens. The laws of the catalogue hold both to the one
equation: they must agree with `batch`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np

from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.engines.job import Finished, Job, Values, follow
from tokenflock.errors import UserError
from tokenflock.observables.pair_density import PairDensity
from tokenflock.solvers.layer import Layer

LIMITS = (  # tokens and coordinates up to which the loop made of equations is the faster
    (256, 8),
    (64, 16),
)


def refusal(job: Job, n: int, d: int) -> str | None:
    """Why this engine cannot do a job, or None if it can."""
    if job.until is not None:
        return "the compiled loop looks at frames only, and not for events"
    if find_spec("llvmlite") is None:
        return "the compiled loop needs llvmlite (pip install llvmlite)"
    if job.law.noisy:
        return "the compiled loop draws no noise"
    if job.dtype != "float32":
        return "the compiled loop works in float32"
    if n < 2:
        return "the compiled loop needs two tokens or more"
    if not job.observables:
        return "the compiled loop needs something to observe"
    if _by_hand(job):
        return None
    from tokenflock.engines.native.running import small, translated

    shapes = [np.shape(number) for number in (follow(job.parts, path) for path in job.paths)]
    try:
        translated(job, [() if shape is None else shape for shape in shapes], n, d, small(job))
    except UserError as error:
        return str(error).replace("the page", "the compiled loop")
    return None


def slower(job: Job, n: int, d: int) -> str | None:
    """Why XLA is faster, or None: its matrix products win where these are most of the work."""
    if _by_hand(job) or any(n <= many and d <= wide for many, wide in LIMITS):
        return None
    return f"products of matrices are faster than the compiled loop for n = {n}, d = {d}"


def _by_hand(job: Job) -> bool:
    """Whether the loop written by hand serves a job."""
    swept = all(path in ((0, "beta"), (1, "h"), (2, 0, "delta")) for path in job.paths)
    return (
        type(job.law) in (SelfAttention, Unnormalised)
        and type(job.solver) is Layer
        and [type(observable) for observable in job.observables] == [PairDensity]
        and swept
    )


def run(job: Job, x: np.ndarray, swept: list[Any], finished: Finished | None = None) -> Values:
    """Observables of every system at every frame; `finished` is told of each group."""
    if _by_hand(job):
        return _densities(job, x, swept, finished)
    from tokenflock.engines.native import running

    return running.run(job, x, swept, finished)


def _densities(
    job: Job, x: np.ndarray, swept: list[np.ndarray], finished: Finished | None
) -> Values:
    """Pair densities of every system at every frame; `finished` is told of each group."""
    from tokenflock.engines.native import densities
    from tokenflock.engines.native.machine import compiled, lanes

    wide, block = lanes(), densities.ROWS
    loop = compiled(densities.text(wide), "densities", "p" * 9 + "i" * 5)
    x = np.asarray(x)
    count, n, d = x.shape
    tall = -(-n // block) * block
    w, steps = np.asarray(job.w, np.float32), np.asarray(job.steps, np.int64)
    of_systems = _numbers(job, swept, count)
    flags = int(isinstance(job.law, SelfAttention)), int(job.delta is not None)
    results = np.empty((count, len(steps)), np.float32)

    def group(first: int) -> None:
        who = np.minimum(
            np.arange(first, first + wide), count - 1
        )  # the last group is filled up with its last system
        sizes = (tall * d, n * (d + 1), tall * tall, block * (d + 1), 4, len(steps), 2)
        X, V, E, M, numbers, told, scratch = (_vectors(size, wide) for size in sizes)
        X[: n * d] = x[who].reshape(wide, n * d).T
        X[n * d :] = 0
        numbers[:] = [values[who] for values in of_systems]
        given = (X, V, E, M, w, numbers, steps, told, scratch)
        loop(*(array.ctypes.data for array in given), len(steps), n, d, *flags)
        results[first : first + wide] = told.T[: count - first]

    values = {job.observables[0].name: results}
    in_groups(group, count, wide, lambda done: None if finished is None else finished(done, values))
    return values


def cores() -> int:
    """How many cores this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


def in_groups(
    group: Callable[[int], None], count: int, size: int, tell: Callable[[np.ndarray], None]
) -> None:
    """group(first) for the first system of each group, on all cores; `tell` who is done."""
    firsts = range(0, count, size)
    with ThreadPoolExecutor(cores()) as threads:
        try:
            for first, _ in zip(firsts, threads.map(group, firsts)):
                tell(np.arange(first, min(first + size, count)))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # those that wait need not run
            raise


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

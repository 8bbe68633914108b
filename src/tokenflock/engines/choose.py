"""Which engine serves a job, how systems are drawn for it, and how much of it runs at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import batch, lanes, resident
from tokenflock.engines.job import Job, Values
from tokenflock.engines.rotation import rotate
from tokenflock.errors import UserError
from tokenflock.matrices._random import Per, RandomMatrices
from tokenflock.precision import precision
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start

ENGINES = ("auto", "batch", "resident", "lanes")
TENSOR_CORES = (  # three products of rounded halves recover single precision on a GPU
    "TF32_TF32_F32_X3"
)
LARGEST = 131_072  # systems in one call of the GPU kernel
SLOTS = 256  # systems that XLA runs side by side on a CPU: their matrices stay in the cache
PACKET = 256  # systems drawn at once on a CPU: one shape, compiled once


@dataclass(frozen=True)
class Systems:
    """The law from which systems are drawn: tokens, and matrices if they are random. One key for
    each (seed, cell, repeat).
    """

    dynamics: Dynamics
    start: Start
    matrices: RandomMatrices | None
    seed: int
    dtype: str
    t: float
    turn: bool

    def rotates(self, job: Job) -> bool:
        """Whether tokens may be turned into n dimensions: the law, the observables and the start
        allow it, and it pays.
        """
        n, d = self.start.shape
        blind = all(one.isotropic for one in job.observables)
        return (
            self.turn
            and d > n
            and self.dynamics.isotropic
            and blind
            and self.matrices is None
            and not self.dynamics.noisy
        )

    def draw(self, ids: np.ndarray, turned: bool) -> tuple[jax.Array, jax.Array]:
        """(tokens, keys of the noise) of the systems (cell, repeat) in `ids`.

        `turned` into n dimensions, or in all d.
        """
        short = turned and self.start.spans
        with precision("float32"):
            x, keys = _draw(self.start, self.seed, jnp.asarray(ids, jnp.uint32), short)
        if isinstance(self.start, Given):  # given to all digits, so not rounded
            x = np.broadcast_to(self.start.x, (len(ids), *self.start.shape))
        x = self.dynamics.space.project(jnp.asarray(x, self.dtype))
        return rotate(x) if turned and not short else x, keys

    def matrices_of(self, ids: np.ndarray) -> tuple[jax.Array, jax.Array | None]:
        """(B, V) of the systems, (systems, layers, d, d)."""
        law, d = self.matrices, self.start.shape[1]
        per = {Per.SYSTEM: ids, Per.CELL: ids * [1, 0], Per.RUN: ids * 0}[law.per]
        with precision("float32"):
            B, V = _draw_matrices(
                law, d, law.layers(self.t), self.seed, jnp.asarray(per, jnp.uint32)
            )
        return jnp.asarray(B, self.dtype), None if V is None else jnp.asarray(V, self.dtype)


def _keys(seed: int, ids: jax.Array, purpose: int) -> jax.Array:
    root = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.vmap(lambda pair: jax.random.fold_in(jax.random.fold_in(root, pair[0]), pair[1]))(
        ids
    )


@eqx.filter_jit
def _draw(start: Start, seed: int, ids: jax.Array, short: bool) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(start.in_span if short else start.draw)(_keys(seed, ids, 0)), _keys(
        seed, ids, 1
    )


@eqx.filter_jit
def _draw_matrices(law: RandomMatrices, d: int, layers: int, seed: int, ids: jax.Array):
    return jax.vmap(lambda key: law.draw(key, d, layers))(_keys(seed, ids, 2))


@dataclass(frozen=True)
class Choice:
    """An engine for a job."""

    engine: str
    why: str
    rotated: bool
    chunk: int
    run: Callable[[np.ndarray, list[np.ndarray], Callable[[int], None]], Values]


def choose(name: str, job: Job, systems: Systems, count: int, memory: float | None) -> Choice:
    """The engine called `name`, or the fastest that can do the job."""
    if name not in ENGINES:
        raise UserError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    turned = systems.rotates(job)
    n, d = systems.start.shape
    d = n if turned else d
    gpu = jax.default_backend() == "gpu"
    moving = systems.matrices is not None and systems.matrices.period is not None
    still = "the resident engine takes matrices that do not change in time" if moving else None
    refusals = {
        "resident": still or resident.refusal(job, n, d, systems.matrices is not None),
        "lanes": lanes.refusal(job, systems.matrices is not None, n),
    }
    if refusals.get(name):
        raise UserError(f"engine {name!r}: {refusals[name]}; use engine='batch'")
    if name == "auto":
        name, why = _automatic(refusals, gpu)
    else:
        why = "asked for"
    chunk = _chunk(name, job, systems, turned, n, d, count, memory)
    return Choice(name, why, turned, chunk, partial(_run, name, job, systems, turned, not gpu))


def _automatic(refusals: dict[str, str | None], gpu: bool) -> tuple[str, str]:
    first = "resident" if gpu else "lanes"
    if refusals[first] is None:
        return (
            first,
            (
                "a GPU is there and a system fits on chip"
                if gpu
                else "the compiled loop serves this law on a CPU"
            ),
        )
    return "batch", refusals[first] if gpu else f"no GPU, and {refusals[first]}"


def _chunk(
    name: str,
    job: Job,
    systems: Systems,
    turned: bool,
    n: int,
    d: int,
    count: int,
    memory: float | None,
) -> int:
    """How many systems run at once: what their drawing and their results take, against the memory
    that there is.
    """
    size = 8 if job.dtype == "float64" else 4
    whole = systems.start.shape[1]
    drawn = 3 * n * (n if turned and systems.start.spans else whole)
    random = 0 if systems.matrices is None else 4 * whole**2 * systems.matrices.layers(systems.t)
    work = 6 * n * n if name == "batch" else 0
    each = size * (drawn + random + work + 4 * n * d + 2 * len(job.steps) * len(job.observables))
    most = min(
        count, LARGEST if name == "resident" else LARGEST // 16
    )  # short enough to show progress and to be stopped
    return int(max(1, min(most, (memory or _free() / 4) // each)))


def _free() -> float:
    """Bytes that are free on the device, or in the machine."""
    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(
                float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
            )
    except (OSError, StopIteration):
        return 4e9


def _run(
    name: str, job: Job, systems: Systems, turned: bool, packets: bool, ids, swept, report
) -> Values:
    """Draw these systems and run them."""
    if name == "resident" or not packets:
        x, keys = systems.draw(ids, turned)
    else:  # drawn in packets of one shape, so that nothing is compiled for the last, smaller one
        parts = [_packet(systems, ids[k : k + PACKET], turned) for k in range(0, len(ids), PACKET)]
        x = np.concatenate([part[0] for part in parts])
        keys = jax.random.wrap_key_data(jnp.concatenate([part[1] for part in parts]))
    if systems.matrices is not None:
        job, swept = _with_matrices(job, systems, ids, swept)
        swept = [np.asarray(one) for one in swept] if packets else swept
    if name == "resident":
        values = resident.run(
            job, x, [jnp.asarray(one) for one in swept], interpret=jax.default_backend() != "gpu"
        )
    elif name == "lanes":
        values = lanes.run(job, x, swept)
    else:
        with jax.default_matmul_precision(
            "highest" if packets or job.dtype == "float64" else TENSOR_CORES
        ):
            values = batch.run(job, x, keys, swept, slots=SLOTS if packets else None)
    report(len(ids))
    return values


def _packet(systems: Systems, ids: np.ndarray, turned: bool) -> tuple[np.ndarray, jax.Array]:
    padded = np.concatenate([ids, np.repeat(ids[-1:], PACKET - len(ids), axis=0)])
    x, keys = systems.draw(padded, turned)
    return np.asarray(x)[: len(ids)], jax.random.key_data(keys)[: len(ids)]


def _with_matrices(
    job: Job, systems: Systems, ids: np.ndarray, swept: list[Any]
) -> tuple[Job, list[Any]]:
    """The job with its random matrices as numbers that differ between systems."""
    B, V = systems.matrices_of(ids)
    law = systems.matrices.fill(job.law, B[0], None if V is None else V[0])
    tail = () if systems.matrices.period is None else ("values",)
    Q = jnp.swapaxes(B, -1, -2)
    one = systems.matrices.period is None
    paths, values = [(0, "Q", *tail)], [Q[:, 0] if one else Q]
    if V is not None:
        paths, values = [*paths, (0, "V", *tail)], [*values, V[:, 0] if one else V]
    return replace(job, law=law, paths=(*job.paths, *paths)), [*swept, *values]

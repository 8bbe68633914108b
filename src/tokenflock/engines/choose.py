"""Which engine serves a job, and how much of it runs at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines import batch, controlled, lanes, sharing
from tokenflock.engines.blocks import Tiles
from tokenflock.engines.job import Finished, Job, Values
from tokenflock.engines.memory import on_device, require_memory
from tokenflock.engines.peaks import peaked
from tokenflock.engines.systems import Systems
from tokenflock.errors import SimulationError, UserError, require
from tokenflock.matrices._random import RandomMatrices
from tokenflock.observables.observable import STRIP
from tokenflock.solvers.adaptive import Adaptive

ENGINES = ("auto", "batch", "resident", "tiled", "lanes")
TENSOR_CORES = (  # three products of rounded halves recover single precision on a GPU
    "TF32_TF32_F32_X3"
)
LARGEST = 131_072  # systems in one call of the GPU kernel
SLOTS = 256  # systems that XLA runs side by side on a CPU: their matrices stay in the cache
NEAREST = 64  # tokens from which tiles in the cache of a core are faster than XLA's matrices
PACKET = 256  # systems drawn at once on a CPU: one shape, compiled once
FEWEST_DRAWN, COORDINATES_DRAWN = 8, 2**19


@dataclass(frozen=True)
class Choice:
    """An engine for a job."""

    engine: str
    why: str
    rotated: bool
    chunk: int
    run: Callable[[np.ndarray, list[np.ndarray], Finished], Values]


def choose(name: str, job: Job, systems: Systems, count: int, memory: float | None) -> Choice:
    """The engine called `name`, or the fastest that can do the job."""
    if name not in ENGINES:
        raise UserError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    rotated = systems.rotates(job)
    if isinstance(job.solver, Adaptive):
        require(name == "auto", "engine", "'auto', with steps of controlled length", name)
        chunk = _chunk("batch", job, systems, rotated, *systems.start.shape, count, memory)
        run = partial(_run, "controlled", job, systems, rotated, chunk)
        return Choice("controlled", "steps are of controlled length", rotated, chunk, run)
    n, d = systems.start.shape
    d = n if rotated else d
    gpu = jax.default_backend() == "gpu"
    moving = systems.matrices is not None and systems.matrices.period is not None
    still = "the resident engine takes matrices that do not change in time" if moving else None
    refusals: dict[str, Callable[[], str | None]] = {
        "resident": lambda: still or _resident().refusal(job, n, d, systems.matrices is not None),
        "tiled": lambda: _tiled().refusal(_filled(job, systems), d),
        "lanes": lambda: lanes.refusal(_filled(job, systems), n, d),
    }
    if name in refusals and (refusal := refusals[name]()):
        raise UserError(f"engine {name!r}: {refusal}; use engine='batch'")
    if name == "auto":
        name, why = _automatic(refusals, job, gpu, n, lanes.slower(job, n, d))
    else:
        why = "asked for"
    chunk = _chunk(name, job, systems, rotated, n, d, count, memory)
    slots = None if gpu else min(SLOTS, chunk)
    return Choice(name, why, rotated, chunk, partial(_run, name, job, systems, rotated, slots))


def _automatic(
    refusals: dict[str, Callable[[], str | None]], job: Job, gpu: bool, n: int, slower: str | None
) -> tuple[str, str]:
    """The fastest engine that does not refuse, and why it is the one."""
    if not gpu:
        refusal = slower or refusals["lanes"]()
        if refusal is None:
            return "lanes", "a compiled loop serves this law on a CPU"
        if n >= NEAREST and refusals["tiled"]() is None and _tiled().nearby(job.law) is None:
            return "tiled", f"no GPU, and {refusal}"
        return "batch", f"no GPU, and {refusal}"
    refusal = refusals["resident"]()
    if refusal is None:
        return "resident", "a GPU is there and a system fits on chip"
    by_tiles, fewest = refusals["tiled"](), _tiled().FEWEST
    if by_tiles is None and n >= fewest:
        return "tiled", f"a GPU is there, and {refusal}"
    return "batch", refusal if n < fewest else str(by_tiles)


def _resident() -> Any:
    """The GPU kernel on chip, imported where it is asked: a CPU need not wait for it."""
    from tokenflock.engines import resident

    return resident


def _tiled() -> Any:
    """The GPU kernels by tiles, imported where they are asked."""
    from tokenflock.engines import tiled

    return tiled


def _filled(job: Job, systems: Systems) -> Job:
    """The job with matrices of the shape that its systems will get."""
    if systems.matrices is None:
        return job
    d, stack = systems.start.shape[1], systems.dynamics.stack
    B = np.zeros((systems.matrices.layers(systems.t), *(() if stack is None else (stack,)), d, d))
    return replace(job, law=systems.matrices.fill(job.law, B, B))


def _chunk(
    name: str,
    job: Job,
    systems: Systems,
    rotated: bool,
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
    tokens = 3 * n * (n if rotated and systems.start.spans else whole)
    heads = systems.dynamics.stack or 1
    random = (
        0 if systems.matrices is None else 4 * heads * whole**2 * systems.matrices.layers(systems.t)
    )
    work = {"batch": 6 * n * n, "tiled": 2 * heads * n * (6 * whole + STRIP)}.get(name, 0)
    each = size * (tokens + random + work + 4 * n * d + 2 * len(job.steps) * len(job.observables))
    require_memory(each, "one system", "take fewer tokens, dimensions or frames", on_device())
    most = min(
        count, LARGEST if name == "resident" else LARGEST // 16
    )  # short enough to show progress and to be stopped
    return int(max(1, min(most, (memory or on_device() / 4) // each)))


def _run(
    name: str,
    job: Job,
    systems: Systems,
    rotated: bool,
    slots: int | None,
    ids: np.ndarray,
    swept: list[np.ndarray],
    finished: Finished,
) -> Values:
    """Draw these systems and run them; `finished` is told of those that are done.

    Fewer systems than `slots` (of a CPU) are filled up: one shape, compiled once, and the same
    numbers whoever runs beside a system.
    """
    count, packets = len(ids), slots is not None
    if name == "batch" and slots is not None and count < slots:
        who = np.minimum(np.arange(slots), count - 1)
        ids, swept = ids[who], [values[who] for values in swept]

    def tell(done: np.ndarray, values: Values) -> None:
        if len(done := done[done < count]):
            finished(done, values)

    packed = packets and name != "resident"
    job, x, keys, swept = drawn(job, systems, ids, swept, rotated, packed)
    if name == "controlled":
        values, reached = controlled.run(job, x, keys, swept, tell=tell)
        if not reached.all():
            raise SimulationError(controlled.stiff(job.law, job.solver))
    elif name == "resident":
        values = _resident().run(
            job,
            jnp.asarray(x),
            [jnp.asarray(numbers) for numbers in swept],
            interpret=jax.default_backend() != "gpu",
        )
    elif name == "lanes":
        values = lanes.run(job, np.asarray(x), swept, tell)
    elif name == "tiled" and packets:
        values = sharing.run(job, np.asarray(x), jnp.asarray(keys), swept, _tiles(job, swept), tell)
    else:
        with jax.default_matmul_precision(
            "highest" if packets or job.dtype == "float64" else TENSOR_CORES
        ):
            tiles = _tiles(job, swept) if name == "tiled" else None
            values = batch.run(job, x, jnp.asarray(keys), swept, slots, tell, tiles)
    if not packets or name == "resident":
        tell(np.arange(count), values)
    return {key: value[:count] for key, value in values.items()}


def drawn(
    job: Job,
    systems: Systems,
    ids: np.ndarray,
    swept: list[Any],
    rotated: bool,
    packed: bool,
) -> tuple[Job, Any, Any, list[Any]]:
    """Return the job with its random matrices, the tokens and keys of noise of these systems, and
    what differs between them: on the host where they are `packed`.
    """
    if not packed:
        x, keys = systems.draw(ids, rotated)
    else:  # drawn in packets of one shape, so that nothing is compiled for the last, smaller one
        size = packet(*systems.start.shape)
        parts = [_packet(systems, ids[k : k + size], rotated) for k in range(0, len(ids), size)]
        x = np.concatenate([part[0] for part in parts])
        keys = jax.random.wrap_key_data(jnp.concatenate([part[1] for part in parts]))
    if systems.matrices is not None:
        job, swept = _with_matrices(job, systems, systems.matrices, ids, swept)
        swept = [np.asarray(values) for values in swept] if packed else swept
    return job, x, keys, swept


def _tiles(job: Job, swept: list[Any]) -> Tiles:
    """How the law of a job listens by tiles here."""
    return Tiles(
        peaked(job, swept),
        interpret=False,
        round=max(1, math.gcd(*job.strides.tolist())) if jax.default_backend() == "gpu" else 1,
    )


def packet(n: int, d: int) -> int:
    """How many systems of a size are drawn at once on a CPU: fewer of large ones, for what fills up
    a packet is drawn in vain.
    """
    return max(FEWEST_DRAWN, min(PACKET, COORDINATES_DRAWN // (n * d)))


def _packet(systems: Systems, ids: np.ndarray, rotated: bool) -> tuple[np.ndarray, jax.Array]:
    spare = packet(*systems.start.shape) - len(ids)
    padded = np.concatenate([ids, np.repeat(ids[-1:], spare, axis=0)])
    x, keys = systems.draw(padded, rotated)
    return np.asarray(x)[: len(ids)], jax.random.key_data(keys)[: len(ids)]


def _with_matrices(
    job: Job, systems: Systems, matrices: RandomMatrices, ids: np.ndarray, swept: list[Any]
) -> tuple[Job, list[Any]]:
    """The job with its random matrices as numbers that differ between systems."""
    B, V = systems.matrices_of(ids)
    law = matrices.fill(job.law, B[0], None if V is None else V[0])
    constant = matrices.period is None
    home, tail = job.law.matrices_at or (), () if constant else ("values",)
    paths, values = [(0, *home, "Q", *tail)], [_queries(B, constant)]
    if V is not None:
        paths, values = [*paths, (0, *home, "V", *tail)], [*values, V[:, 0] if constant else V]
    return replace(job, law=law, paths=(*job.paths, *paths)), [*swept, *values]


@partial(jax.jit, static_argnames="constant")
def _queries(B: jax.Array, constant: bool) -> jax.Array:
    """Q = B^T of every layer, or of the only one."""
    return jnp.swapaxes(B[:, 0] if constant else B, -1, -2)

"""Many systems at once through XLA, on any device: all together on a GPU, in slots on a CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines.blocks import Tiles, check_sound, first_look, note_passages, run_block
from tokenflock.engines.job import PASSAGE, Finished, Job, Values
from tokenflock.engines.slots import queue


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

    return named(*queue(job, np.asarray(x), keys, swept, min(slots, len(x)), tell))


def _whole(
    job: Job, x: Any, keys: jax.Array, swept: list[Any], tiles: Tiles | None
) -> tuple[list[jax.Array], np.ndarray]:
    """Every system at once, from the first frame to the last."""
    x, w, swept = (
        jnp.asarray(x),
        jnp.asarray(job.w, job.dtype),
        [jnp.asarray(values) for values in swept],
    )
    *start, over = first_look(job.parts, job.paths, x, w, swept, job.until, tiles)
    first, strides = jnp.zeros(len(x), jnp.int32), jnp.asarray(job.strides, jnp.int32)
    _, later, least, passage = run_block(
        job.parts, job.paths, x, w, keys, swept, first, strides, job.until, over, tiles
    )
    check_sound(job, least)
    steps = np.where(np.asarray(over), 0.0, np.nan)
    note_passages(job, w, keys, swept, passage, steps)
    return [jnp.concatenate([a[:, None], b], axis=1) for a, b in zip(start, later)], steps

"""Systems shared among the cores of a CPU, a few at a time on each: what XLA does to one of them
stays in the cache of its core.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines import batch
from tokenflock.engines.blocks import Tiles
from tokenflock.engines.job import Finished, Job, Values
from tokenflock.engines.lanes import cores, in_groups
from tokenflock.precision import precision

COORDINATES = 2**17  # of the systems that a core takes at once: half a megabyte
MOST = 64  # systems that it takes at once


def run(
    job: Job, x: np.ndarray, keys: jax.Array, swept: list[Any], tiles: Tiles, tell: Finished
) -> Values:
    """Observables of every system at every frame, as `batch.run`; `tell` is told of each group."""
    count, n, d = x.shape
    size = max(1, min(COORDINATES // (n * d), MOST, -(-count // cores())))
    key_data = np.asarray(jax.random.key_data(keys))
    results: Values = {}

    def group(first: int) -> None:
        who = np.minimum(np.arange(first, first + size), count - 1)
        with precision(job.dtype):
            own = jax.random.wrap_key_data(jnp.asarray(key_data[who]))
            values = batch.run(job, x[who], own, [a[who] for a in swept], None, None, tiles)
        for name, value in values.items():
            array = np.asarray(value)
            room = results.setdefault(name, np.empty((count, *array.shape[1:]), array.dtype))
            room[first : first + size] = array[: count - first]

    in_groups(group, count, size, lambda done: tell(done, results))
    return results

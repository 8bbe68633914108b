"""Which frames of a long run a film shows."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.errors import require
from tokenflock.plots._story import story


def paced(result: xr.Dataset, frames: int = 300, *, waiting: float = 0.5) -> xr.Dataset:
    """The same run with few frames, chosen so that a film of them neither jumps nor stands still.

    Equal steps between them are equal steps of a clock that runs partly with the logarithm of time
    and partly with the way that tokens go: a merge after a long wait is seen as it happens.

    Args:
      result: a run with many frames, denser than a film needs.
      frames: about how many to keep.
      waiting: the share of the clock that runs with the logarithm of time, between 0 and 1.
    """
    run = story(result)
    require(frames >= 2, "frames", "2 or more", frames)
    require(0 <= waiting <= 1, "waiting", "between 0 and 1", waiting)
    require(run.frames >= 3, "result", "a run of three frames or more", run.frames)
    times = run.times.astype(float)
    late = np.log(np.maximum(times[1:], times[times > 0][0]))
    steps = np.diff(late, prepend=late[0])
    cosine = np.einsum("fnd,fnd->fn", run.x[:-1], run.x[1:])
    ways = np.arccos(np.clip(cosine, -1, 1)) @ run.w
    clock = np.zeros(run.frames)
    for share, part in ((waiting, steps), (1 - waiting, ways)):
        total = part.sum()
        clock[1:] += share * np.cumsum(part) / (total if total > 0 else 1)
    wanted = np.linspace(0, clock[-1], frames)
    kept = np.unique(np.searchsorted(clock, wanted - 1e-12).clip(0, run.frames - 1))
    return result.isel({run.axis: np.unique(np.concatenate([[0], kept, [run.frames - 1]]))})

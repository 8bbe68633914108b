"""What a sweep will take, before it runs: cells, blocks, bytes, and time from a short trial."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tokenflock.sweeps.spec import Spec
from tokenflock.verbs.asked import Request
from tokenflock.verbs.filling import Desk, cell_bytes, costs
from tokenflock.verbs.schedule import When

TRIAL = 32  # steps of the trial; then four times as many


@dataclass(frozen=True)
class Forecast:
    """What a sweep will take."""

    cells: int
    blocks: int
    systems: int
    bytes: int  # of the store
    block_bytes: int
    seconds: float  # of computing, one block after the other; an upper bound where systems settle
    axes: dict[str, int]
    trial: float  # seconds that the trial took


def forecast(spec: Spec, calibrate: bool = True) -> Forecast:
    """Cells, bytes and expected time of a sweep. With `refine`, of the full grid."""
    wanted = spec.asked()
    whole = spec.cut(wanted)
    size = cell_bytes(wanted)
    work = costs(wanted, whole)
    began = time.perf_counter()
    seconds = float("nan")
    if calibrate:
        seconds = _calibrated(wanted) * float(work.sum()) / float(work[0] / whole.size(0))
    return Forecast(
        whole.total,
        len(whole),
        whole.total * wanted.plan.repeats,
        size * whole.total,
        size * int(np.prod(whole.chunk)),
        seconds,
        dict(zip(whole.dims, whole.shape)),
        time.perf_counter() - began,
    )


def _calibrated(wanted: Request) -> float:
    """Seconds of the first cell: from two short runs of it, the first compiled before."""
    plan = wanted.plan
    first = (0,) * len(plan.shape)
    counts, times = plan.steps(plan.sheet(first).solver)
    steps, h = int(counts[-1]), float(times[-1] / counts[-1])
    short = min(steps, TRIAL)
    long = min(steps, 4 * TRIAL)

    def run(count: int) -> float:
        when = When(count * h, None, 2)
        trial = replace(wanted, plan=replace(plan, when=when))
        desk = Desk(trial)
        desk.run([first])  # compiles
        began = time.perf_counter()
        desk.run([first])
        return time.perf_counter() - began

    quick = run(short)
    if long == short:
        return quick * steps / short
    slow = run(long)
    each = max(slow - quick, 0.0) / (long - short)
    return max(quick, 0.0) + each * (steps - short)

"""What a sweep costs beside computing: blocks of one second on one and on two processes, a store
written block by block, and a million cells.

python benchmarks/sweep.py --out benchmarks/results/sweep.json

The overhead is what the processes waited beside computing, from the first block that is done to the
last; the speed-up needs two free cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from timing import keep

from tokenflock.dynamics import SelfAttention
from tokenflock.observables import MeanCosine
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.sweeps import Spec, forecast, status, sweep
from tokenflock.sweeps.cut import Cut
from tokenflock.sweeps.log import Log
from tokenflock.sweeps.store import Form, Store

SPEC = Spec(
    SelfAttention(),
    Uniform(n=16, d=8),
    {"beta": np.linspace(0.5, 9, 16)},
    Layer(h=0.1),
    [MeanCosine()],
    repeats=256,
    t=10.0,
    frames=101,
    engine="batch",
    settle=False,
    cells=1,
)


def second_blocks(target: float) -> Spec:
    """The spec, with blocks that take so many seconds here."""
    told = forecast(SPEC)
    each = told.seconds / told.cells
    steps = max(100, int(100 * target / each) // 100 * 100)
    return replace(SPEC, t=steps * 0.1)


def timed(spec: Spec, processes: int, folder: Path) -> tuple[float, float]:
    """(seconds from the first to the last block, seconds of computing in them)."""
    moments, path = [], folder / f"{processes}.zarr"
    sweep(
        spec,
        path,
        processes=processes,
        watch=lambda view: moments.append((time.monotonic(), view.done)),
    )
    first = next(when for when, done in moments if done >= processes)  # all are warm then
    log = [
        line.split("[", 1)[1] for line in (path / ".tokenflock" / "blocks").read_text().splitlines()
    ]
    seconds = [float(line.rstrip("]").split(",")[3]) for line in log if line.startswith('"done"')]
    return moments[-1][0] - first, sum(seconds[processes:])


def writing(folder: Path, blocks: int = 200, size: int = 10_000) -> float:
    """Seconds to write one block of two variables, on the disk when it is done."""
    values = {"x": np.zeros((1, size)), "x_error": np.zeros((1, size))}
    with Store(folder / "writing.zarr") as store:
        store.begin("mark", Cut(("a",), (blocks,), (1,)), {})
        axes = {"a": (("a",), np.arange(blocks), {}), "time": (("time",), np.arange(size), {})}
        form = Form({name: (("a", "time"), {}) for name in values}, axes, {})
        store.prepare(form, values)
        began = time.perf_counter()
        for block in range(blocks):
            store.put(block, values, 1.0)
        return (time.perf_counter() - began) / blocks


def million(folder: Path) -> dict[str, float]:
    """Planning and status of 10^6 cells, in blocks of one."""
    began = time.process_time()
    spec = replace(SPEC, over={"beta": np.linspace(0.1, 9, 1000), "d": np.arange(2, 1002)})
    told = forecast(spec, calibrate=False)
    planned = time.process_time() - began
    with Store(folder / "million.zarr") as store:
        store.begin("mark", Cut(("a", "b"), (1000, 1000), (1, 1)), {})
    log = Log(folder / "million.zarr" / ".tokenflock" / "blocks")
    progress = log.read(10**6)
    progress.done[:] = True
    log.rewrite(progress)
    began = time.process_time()
    done = status(folder / "million.zarr").done
    return {
        "cells": told.cells,
        "planning": planned,
        "status of 10^6 blocks": time.process_time() - began,
        "done": done,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a block")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told: dict[str, object] = {"date": str(date.today()), "load": os.getloadavg()[0]}
        told |= {"cores": os.cpu_count(), "writing a block": writing(folder)}
        told["a million cells"] = million(folder)
        spec = second_blocks(args.seconds)
        walls = {}
        for processes in (1, 2):
            wall, busy = timed(spec, processes, folder)
            walls[processes] = wall / (len(spec.over["beta"]) - processes)
            overhead = wall * processes / busy - 1
            told[f"{processes} processes"] = {"wall": wall, "computing": busy, "overhead": overhead}
        told["speed-up"] = walls[1] / walls[2]
    keep(told, args.out)


if __name__ == "__main__":
    main()

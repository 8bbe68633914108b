"""Compiled loops against XLA's batch on the CPU: RK4 and five observables, the same systems, in one
run.

python benchmarks/cpu_loops.py --out benchmarks/results/cpu-loops.json
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import jax
import numpy as np
from timing import keep

from tokenflock.dynamics import Causal, SelfAttention
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import batch, lanes
from tokenflock.engines.job import Job
from tokenflock.observables import (
    ConsensusDistance,
    Energy,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
)
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4

FIVE = (MeanCosine(), Energy(), OrderParameter(), MinimumCosine(), ConsensusDistance())
ROWS = (  # law, n, d, systems, steps
    (SelfAttention(beta=4.0), 32, 3, 512, 60),
    (SelfAttention(beta=4.0), 32, 8, 512, 40),
    (SelfAttention(beta=4.0), 32, 16, 256, 20),
    (Causal(beta=4.0), 32, 3, 512, 40),
    (SelfAttention(beta=4.0), 128, 3, 64, 10),
)


def tokens(systems: int, n: int, d: int) -> np.ndarray:
    """Uniform tokens."""
    x = np.random.default_rng(0).normal(size=(systems, n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def best(ways: dict[str, Callable[[], object]], times: int) -> dict[str, tuple[float, float]]:
    """(seconds on the wall, seconds of all cores) of each way, the best of several in turn."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(times):
        for name, way in ways.items():
            wall, cores = time.perf_counter(), time.process_time()
            way()
            found[name].append((time.perf_counter() - wall, time.process_time() - cores))
    return {
        name: (min(wall for wall, _ in all_), min(cores for _, cores in all_))
        for name, all_ in found.items()
    }


def row(
    law: Dynamics, n: int, d: int, systems: int, steps: int, times: int
) -> dict[str, str | float]:
    """Microseconds a system-step by either engine, observed after every step and at the end."""
    x, keys = tokens(systems, n, d), jax.random.split(jax.random.key(0), systems)
    with precision("float32"):
        parts = cast((law, RK4(h=0.1), FIVE), "float32")
        often = Job(*parts, np.full(n, 1 / n), np.arange(steps + 1), (), "float32", False)
        seldom = replace(often, steps=np.array([0, steps]))
        told: dict[str, str | float] = {"law": type(law).__name__, "n": n, "d": d}
        for word, job in (("every step", often), ("at the end", seldom)):
            ways = {
                "lanes": lambda job=job: lanes.run(job, x, []),
                "batch": lambda job=job: batch.run(job, x, keys, [], min(256, systems)),
            }
            seconds = best(ways, times)
            for name, pair in seconds.items():
                for kind, value in zip(("wall", "cores"), pair):
                    told[f"{name}, {word}, {kind}"] = value * 1e6 / systems / steps
            told[f"ratio, {word}"] = seconds["batch"][0] / seconds["lanes"][0]
            told[f"ratio of all cores, {word}"] = seconds["batch"][1] / seconds["lanes"][1]
    return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--rows", type=int, default=len(ROWS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    told = {
        "date": str(date.today()),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "microseconds a system-step": [row(*one, args.times) for one in ROWS[: args.rows]],
    }
    keep(told, args.out)


if __name__ == "__main__":
    main()

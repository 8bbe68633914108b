"""Random Q, K, V for every system (Figure 5 of arXiv 2312.10794, d = 128): engines against the
plain loop of the field on one card in one run, and their errors against float64.

python benchmarks/figure5.py --out benchmarks/results/DATE-CARD-figure5.json
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.6")  # torch needs room beside it

import jax
import numpy as np
from phase_diagram import H, N, baseline, general
from timing import best

import tokenflock as flock
from tokenflock.dynamics import Attention
from tokenflock.matrices import Per
from tokenflock.observables import Energy, MeanCosine, PairDensity
from tokenflock.solvers import Layer
from tokenflock.starts import Given

D = 128


def errors(engine: str) -> dict[str, list[float]]:
    """Largest differences from float64 over a few systems, relative where they exceed one, at
    t = 1, 3 and 10.
    """
    rng = np.random.default_rng(0)
    G = rng.normal(size=(3, 4, D, D))
    over = {"Q": G[0] @ G[1] / D**0.5, "V": G[2] @ np.swapaxes(G[2], 1, 2) / D**0.5}
    x = rng.normal(size=(N, D))
    observe = [MeanCosine(), Energy(beta=1.0), PairDensity(delta=0.1)]
    options = {"over": over, "repeats": 1, "t": 10.0, "frames": 11, "observe": observe}
    options |= {"solver": Layer(h=H), "tolerance": None}
    law = Attention(beta=2.0)
    exact = flock.ensemble(law, Given(x), engine="batch", dtype="float64", **options)
    ours = flock.ensemble(law, Given(x), engine=engine, **options)
    gaps = {}
    for name in (observable.name for observable in observe):
        right = np.asarray(exact[name].transpose("time", ...), np.float64).reshape(11, -1)
        gap = np.abs(np.asarray(ours[name].transpose("time", ...)).reshape(11, -1) - right)
        gaps[name] = [float((gap / np.maximum(1, np.abs(right)))[k].max()) for k in (1, 3, 10)]
    return gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--betas", type=int, default=90)
    parser.add_argument("--repeats", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--engines", default="resident,batch,tiled")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    grid = np.linspace(0.1, 9, asked.betas)
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"
    told: dict = {"card": jax.devices()[0].device_kind, "jax": jax.__version__}
    told["systems"] = asked.betas * asked.repeats
    for tight in (False, True):
        work = partial(baseline, D, 4.0, asked.repeats, asked.steps, device, tight, True)
        told["tight baseline" if tight else "baseline"] = best(work, 2) * asked.betas
    print(told, flush=True)
    for engine in asked.engines.split(","):
        for per in (Per.SYSTEM, Per.CELL):
            seconds = best(
                partial(general, D, grid, asked.repeats, asked.steps, per, engine=engine), 3
            )
            row = {"seconds": seconds, "ratio": told["baseline"] / seconds}
            told[f"{engine}, {per.value}"] = row
            print(engine, per.value, row, flush=True)
        told[f"{engine}, errors"] = errors(engine)
        print(engine, told[f"{engine}, errors"], flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

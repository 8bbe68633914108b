"""On a GPU: blocks, times of first passage, members of ensembles and gradients are as on the CPU.

python benchmarks/gpu_agreement.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import Block, SelfAttention
from tokenflock.events import Consensus
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform


def blocks(norm: str, mask: str) -> np.ndarray:
    """Means over an ensemble of a block with fresh weights in every layer."""
    law = Block(heads=4, mask=mask, feed_forward="gelu", norm=norm)
    options = {"repeats": 16, "t": 2, "frames": 11, "solver": Layer(h=0.1)}
    return flock.ensemble(law, Uniform(n=16, d=16), observe=[MeanCosine()], **options).mean_cosine


def passages(dtype: str) -> np.ndarray:
    """Median times until consensus."""
    options = {"over": {"beta": [0.5, 1.0, 2.0]}, "repeats": 64, "t": 200, "frames": 21}
    start, solver = Uniform(n=8, d=3), RK4(h=0.1)
    result = flock.ensemble(
        SelfAttention(), start, until=Consensus(), solver=solver, dtype=dtype, **options
    )
    return result.median_time


def member() -> np.ndarray:
    """The last tokens of one system of an ensemble."""
    options = {"over": {"beta": [1.0, 4.0]}, "repeats": 8, "t": 5, "frames": 6}
    result = flock.ensemble(SelfAttention(), Uniform(n=16, d=3), observe=[PairDensity()], **options)
    return flock.member(result, beta=4.0, repeat=5).x[-1]


def gradient() -> np.ndarray:
    """Of the mean cosine after a hundred layers, with respect to beta."""
    x = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)

    def cosine(beta):
        y = flock.flow_map(SelfAttention(beta=beta), 10.0, Layer(h=0.1))(x)
        return (y @ y.T).mean()

    return np.asarray(jax.grad(cosine)(2.0))


CASES: dict[str, Callable[[], np.ndarray]] = {
    "block, post, no mask": lambda: blocks("post", "none"),
    "block, pre, causal": lambda: blocks("pre", "causal"),
    "first passage, float32": lambda: passages("float32"),
    "first passage, float64": lambda: passages("float64"),
    "member": member,
    "gradient": gradient,
}


def values(place: Path) -> None:
    """Run every case on the device that this process has, and keep the numbers."""
    kept = {}
    for name, case in CASES.items():
        began = time.perf_counter()
        kept[name] = np.asarray(case(), float)
        kept[name + " s"] = np.asarray(time.perf_counter() - began)
    np.savez(place, **kept)


def main() -> None:
    """Run every case on both devices, in a process each, and print the largest difference."""
    print(jax.devices(), jax.__version__)
    with TemporaryDirectory() as folder:
        here, there = Path(folder) / "here.npz", Path(folder) / "cpu.npz"
        values(here)
        command = [sys.executable, __file__, str(there)]
        subprocess.run(command, check=True, env=os.environ | {"JAX_PLATFORMS": "cpu"})
        with np.load(here) as first, np.load(there) as second:
            for name in CASES:
                worst = float(np.nanmax(np.abs(first[name] - second[name])))
                seconds = f"{first[name + ' s']:.1f} s, on the CPU {second[name + ' s']:.1f} s"
                print(f"{name:<26} differs by {worst:.1e}   ({seconds})", flush=True)


if __name__ == "__main__":
    values(Path(sys.argv[1])) if len(sys.argv) > 1 else main()

"""On a GPU: the resident kernel agrees with XLA, law by law, with and without its shortcuts.

python benchmarks/resident_check.py
"""

from __future__ import annotations

import time

import jax
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import NGPT, Attention, Causal, PostNorm, SelfAttention, Sinkhorn, SqrtNorm, Unnormalised
from tokenflock.matrices import Ginibre, RandomMatrices, Value
from tokenflock.observables import ClusterCount, Energy, MeanCosine, OrderParameter, PairDensity
from tokenflock.solvers import RK4, Euler, Heun, Layer
from tokenflock.starts import Uniform


def check(label: str, **options) -> None:
    results = {}
    for engine in ("batch", "resident"):
        began = time.perf_counter()
        results[engine] = flock.ensemble(repeats=64, engine=engine, **options)
        results[engine + "_s"] = time.perf_counter() - began
    worst = {
        name: float(np.abs(results["batch"][name] - results["resident"][name]).max())
        for name in results["batch"].data_vars if not name.endswith("_error")
    }  # fmt: skip
    print(
        f"{label:<40} "
        + ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
        + f"   ({results['resident_s']:.1f} s)",
        flush=True,
    )


def main() -> None:
    print(jax.devices(), jax.__version__)
    beta = {"beta": [0.5, 2.0, 6.0]}
    layers = {"over": beta, "t": 10, "frames": 21, "solver": Layer(h=0.1)}
    many = [PairDensity(), ClusterCount(), Energy(log=True), OrderParameter(), MeanCosine()]
    for law in (SelfAttention(), Unnormalised(), Sinkhorn(), Causal(), PostNorm(), NGPT(), SqrtNorm()):
        observe = many if isinstance(law, SelfAttention) else [PairDensity()]
        check(
            type(law).__name__,
            dynamics=law,
            start=Uniform(n=32, d=3),
            over=beta,
            t=10,
            frames=21,
            solver=Layer(h=0.1),
            observe=observe,
        )
    for solver in (Euler(h=0.1), Heun(h=0.1), RK4(h=0.1)):
        check(repr(solver), dynamics=SelfAttention(), start=Uniform(n=32, d=3), over=beta, t=10, frames=21, solver=solver)
    for n, d in ((7, 2), (32, 32), (64, 16), (32, 128), (32, 1024)):
        check(
            f"n = {n}, d = {d}",
            dynamics=SelfAttention(),
            start=Uniform(n=n, d=d),
            over=beta,
            t=10,
            frames=21,
            solver=Layer(h=0.1),
        )
    for d, period in ((16, None), (128, None), (16, 1.0)):
        law = RandomMatrices(kernel=Ginibre(), value=Value.WISHART, period=period)
        start = Uniform(n=32, d=d)
        check(
            f"random matrices, d = {d}, {period}",
            dynamics=Attention(),
            start=start,
            over=beta,
            t=5,
            frames=11,
            solver=Layer(h=0.1),
            matrices=law,
        )
    check(
        "no settling",
        dynamics=SelfAttention(),
        start=Uniform(n=32, d=3),
        over=beta,
        t=10,
        frames=21,
        solver=Layer(h=0.1),
        settle=False,
    )


if __name__ == "__main__":
    main()

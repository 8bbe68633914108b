"""On a GPU: the resident kernel agrees with XLA, law by law, with and without its shortcuts.

python benchmarks/resident_check.py
"""

from __future__ import annotations

import time

import jax
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import (
    NGPT,
    Attention,
    Causal,
    PostNorm,
    SelfAttention,
    Sinkhorn,
    SqrtNorm,
    Unnormalised,
)
from tokenflock.matrices import Ginibre, RandomMatrices, Value
from tokenflock.observables import ClusterCount, Energy, MeanCosine, OrderParameter, PairDensity
from tokenflock.solvers import RK4, Euler, Heun, Layer
from tokenflock.starts import Uniform


def check(label: str, **options) -> None:
    results = {}
    for engine in ("batch", "resident"):
        began = time.perf_counter()
        try:
            results[engine] = flock.ensemble(repeats=64, engine=engine, tolerance=None, **options)
        except Exception as error:  # report and go on: this script compares many laws
            print(f"{label:<40} {engine}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            return
        results[engine + "_s"] = time.perf_counter() - began
    worst = {
        name: float(np.abs(results["batch"][name] - results["resident"][name]).max())
        for name in results["batch"].data_vars
        if not name.endswith("_error")
    }
    print(
        f"{label:<40} "
        + ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
        + f"   ({results['resident_s']:.1f} s)",
        flush=True,
    )


def main() -> None:
    print(jax.devices(), jax.__version__)
    layers = {
        "over": {"dynamics.beta": [0.5, 2.0, 6.0]},
        "t": 10,
        "frames": 21,
        "solver": Layer(h=0.1),
    }
    many = [
        PairDensity(),
        ClusterCount(),
        Energy(beta=2.0, log=True),
        OrderParameter(),
        MeanCosine(),
    ]
    for law in (
        SelfAttention(),
        Unnormalised(),
        Sinkhorn(),
        Causal(),
        PostNorm(),
        NGPT(),
        SqrtNorm(),
    ):
        observe = many if isinstance(law, SelfAttention) else [PairDensity()]
        check(type(law).__name__, dynamics=law, start=Uniform(n=32, d=3), observe=observe, **layers)
    for solver in (Euler(h=0.1), Heun(h=0.1), RK4(h=0.1)):
        check(
            repr(solver),
            dynamics=SelfAttention(),
            start=Uniform(n=32, d=3),
            **layers | {"solver": solver},
        )
    for n, d in ((7, 2), (32, 32), (64, 16), (32, 128), (32, 1024)):
        check(f"n = {n}, d = {d}", dynamics=SelfAttention(), start=Uniform(n=n, d=d), **layers)
    for d, period in ((16, None), (128, None), (16, 1.0)):
        law = RandomMatrices(kernel=Ginibre(), value=Value.WISHART, period=period)
        check(
            f"random matrices, d = {d}, {period}",
            dynamics=Attention(),
            start=Uniform(n=32, d=d),
            matrices=law,
            **layers,
        )
    check("no settling", dynamics=SelfAttention(), start=Uniform(n=32, d=3), settle=False, **layers)


if __name__ == "__main__":
    main()

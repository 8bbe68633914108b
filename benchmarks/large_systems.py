"""Very large single systems: one velocity of n tokens, time and memory against n, beside torch's
own attention kernel.

python benchmarks/large_systems.py                     # CPU: up to n = 20,000; GPU: up to n =
100,000
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs room on the same card

import jax
import jax.numpy as jnp
import numpy as np
import torch
from timing import best

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Streamed
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

BETA, D = 4.0, 3


def tokens(n: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(n, D)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ours(n: int) -> tuple[float, float, np.ndarray]:
    """(seconds, bytes of scratch memory, velocities)."""
    with precision("float32"):
        law = cast(Streamed(SelfAttention(beta=BETA)), "float32")
        x, w = jnp.asarray(tokens(n)), jnp.full(n, 1 / n, jnp.float32)
        compiled = jax.jit(lambda x, w: law.velocity(jnp.float32(0), x, w)).lower(x, w).compile()
        scratch = compiled.memory_analysis().temp_size_in_bytes
        return (
            best(lambda: jax.block_until_ready(compiled(x, w)), 5),
            scratch,
            np.asarray(compiled(x, w)),
        )


def theirs(n: int, device: str) -> float:
    """torch's scaled_dot_product_attention in float32 on the same tokens, padded to the width that
    its fast kernel asks for.
    """
    x = torch.nn.functional.pad(torch.tensor(tokens(n), device=device), (0, 8 - D))[None, None]

    def work():
        torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=BETA)
        if device == "cuda":
            torch.cuda.synchronize()

    return best(work, 5)


def exact(n: int, rows: int = 50) -> np.ndarray:
    """The first velocities by a direct sum in float64."""
    x = tokens(n).astype(np.float64)
    S = BETA * (x[:rows] @ x.T)
    E = np.exp(S - S.max(axis=1, keepdims=True))
    f = (E @ x) / E.sum(axis=1, keepdims=True)
    return f - (f * x[:rows]).sum(axis=1, keepdims=True) * x[:rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    gpu = jax.default_backend() == "gpu" and torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    name = torch.cuda.get_device_name() if gpu else platform.processor() or "CPU"
    rows = []
    for n in (12_500, 25_000, 50_000, 100_000) if gpu else (2_500, 5_000, 10_000, 20_000):
        seconds, scratch, v = ours(n)
        error = float(np.abs(v[:50] - exact(n)).max())
        other = theirs(n, device)
        rows.append(
            {
                "n": n,
                "seconds": seconds,
                "torch_seconds": other,
                "scratch_bytes": scratch,
                "error": error,
            }
        )
        print(
            f"n = {n:<7} {1e3 * seconds:9.2f} ms   torch {1e3 * other:9.2f} ms   ratio"
            f" {other / seconds:5.2f}   scratch {scratch / 1e6:8.2f} MB   error {error:.1e}  "
            f" {n * n / seconds:.3g} pairs/s",
            flush=True,
        )
    n, began = rows[-1]["n"], time.perf_counter()
    law = Streamed(SelfAttention(beta=BETA))
    run = flock.simulate(
        law, Uniform(n=n, d=D), t=1.0, frames=3, solver=RK4(h=0.25), dtype="float32"
    )
    print(
        f"simulate to t = 1 with {n} tokens: {time.perf_counter() - began:.2f} s, compilation"
        f" included; x {run.x.shape}"
    )
    if options.out:
        facts = {
            "device": name,
            "date": time.strftime("%Y-%m-%d"),
            "jax": jax.__version__,
            "torch": torch.__version__,
        }
        options.out.write_text(json.dumps(facts | {"d": D, "beta": BETA, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

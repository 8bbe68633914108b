"""Ensembles of middle and large systems: layers by tiles against a loop around torch's own fused
attention, on the same card in the same run, and the errors of both against float64.

python benchmarks/tiled.py --out benchmarks/results/DATE-CARD-tiled.json
python benchmarks/tiled.py --tune                    # the tiles of dynamics/_tiles.py anew
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.6")  # torch needs room beside it

import jax
import jax.numpy as jnp
import numpy as np
import torch
from timing import best

import tokenflock as flock
from tokenflock.dynamics import (
    Attention,
    Block,
    Causal,
    SelfAttention,
    Streamed,
    Unnormalised,
    _tiles,
)
from tokenflock.engines.tiled import tiled
from tokenflock.observables import Energy, MeanCosine, OrderParameter, PairDensity
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

BETA, H, LAYERS = 4.0, 0.1, 60
SIZES = [  # n, d, systems
    *((n, 64, systems) for n, systems in ((128, 512), (256, 256), (512, 128), (1024, 64))),
    *((n, 64, 16) for n in (128, 256, 1024, 4096)),
    *((1024, d, 64) for d in (3, 8, 16, 32, 128)),
    *((128, d, 512) for d in (3, 16, 128)),
    (16_384, 3, 16),
    (16_384, 64, 2),
    (4096, 128, 16),
    (512, 128, 128),
]


def tokens(n: int, d: int, systems: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(systems, n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@partial(jax.jit, static_argnames=("count", "way", "peaked"))
def layers(x: jax.Array, count: int, way: str, peaked: bool = True) -> jax.Array:
    """So many layers of every system."""
    beta = jnp.asarray(BETA, x.dtype)
    law = SelfAttention(beta=beta)
    law = tiled(law, peaked, False) if way == "tiled" else law
    w = jnp.full(x.shape[1], 1 / x.shape[1], x.dtype)
    solver, start = Layer(h=jnp.asarray(H, x.dtype)), jnp.zeros((), x.dtype)
    return jax.vmap(lambda x: solver.steps(law, start, x, w, count))(x)


def ours(x: np.ndarray, way: str = "tiled", tries: int = 5) -> float:
    y = jnp.asarray(x)
    return best(lambda: jax.block_until_ready(layers(y, LAYERS, way)), tries)


def theirs(x: np.ndarray, tries: int = 5) -> float:
    """A Python loop of torch's scaled_dot_product_attention in float32."""
    d = x.shape[-1]
    start = torch.tensor(x, device="cuda")[:, None]
    start = torch.nn.functional.pad(start, (0, -d % 8))

    def work() -> None:
        y = start
        for _ in range(LAYERS):
            said = torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=BETA)
            y = torch.nn.functional.normalize(y + H * said, dim=-1)
        torch.cuda.synchronize()

    return best(work, tries)


def errors(n: int, d: int, count: int = 100) -> dict[str, float]:
    """Largest errors of coordinates after so many layers, against float64."""
    x = tokens(n, d, 4)
    told = {}
    for way in ("tiled", "plain"):
        with jax.default_matmul_precision("highest"):
            told[way] = np.asarray(layers(jnp.asarray(x), count, way), np.float64)
    with jax.enable_x64(True):
        exact = np.asarray(layers(jnp.asarray(x, jnp.float64), count, "plain"))
    return {way: float(np.abs(y - exact).max()) for way, y in told.items()}


def velocity(n: int, d: int = 3) -> dict[str, float]:
    """Seconds of one velocity of very many tokens, and of torch's attention."""
    x = tokens(n, d, 1)[0]
    law = Streamed(SelfAttention(beta=jnp.float32(BETA)))
    w = jnp.full(n, 1 / n, jnp.float32)
    once = jax.jit(lambda x: law.velocity(jnp.float32(0), x, w))
    y, there = jnp.asarray(x), torch.nn.functional.pad(torch.tensor(x, device="cuda"), (0, -d % 8))

    def torch_once() -> None:
        a = there[None, None]
        torch.nn.functional.scaled_dot_product_attention(a, a, a, scale=BETA)
        torch.cuda.synchronize()

    mine = best(lambda: jax.block_until_ready(once(y)), 5)
    return {"n": n, "d": d, "ours": mine, "torch": best(torch_once, 3)}


def engines() -> list[dict]:
    """Whole ensembles of several laws by the engine that is picked and by `batch`: the largest
    difference of their means, relative where they exceed one, and the seconds of each.
    """
    laws = {
        "SA": (SelfAttention(), {"beta": [1.0, 4.0]}),
        "USA, peak": (Unnormalised(clock="peak"), {"beta": [1.0, 4.0]}),
        "causal": (Causal(), {"beta": [1.0, 4.0]}),
        "Q, K, V": (Attention.example(d=16), {}),
        "block": (Block(heads=4, mask="window", feed_forward="gelu", norm="pre"), {}),
    }
    observe = [MeanCosine(), Energy(beta=1.0), PairDensity(delta=0.1), OrderParameter()]
    options = {"repeats": 32, "t": 6.0, "frames": 7, "observe": observe, "solver": Layer(h=0.1)}
    options |= {"tolerance": None}
    rows = []
    for name, (law, over) in laws.items():
        results, seconds = [], []
        for engine in ("auto", "batch"):

            def run(engine=engine, law=law, over=over):
                start = Uniform(n=512, d=16)
                return flock.ensemble(law, start, over=over, engine=engine, **options)

            results.append(run())
            seconds.append(best(run, 2))
        a, b = results
        gaps = [
            float((np.abs(a[o.name] - b[o.name]) / np.maximum(1, np.abs(b[o.name]))).max())
            for o in observe
            if o.name in a.data_vars
        ]
        rows.append({"law": name, "engine": a.attrs["engine"][:30], "gap": max(gaps)})
        rows[-1] |= {"seconds": seconds[0], "batch": seconds[1]}
        print(rows[-1], flush=True)
    return rows


def tune() -> None:
    """The time of one size by many tiles."""
    before = _tiles.sides
    for d, n, systems in ((64, 128, 512), (64, 1024, 64), (128, 128, 512), (128, 1024, 64)):
        x, few = tokens(n, d, systems), d <= _tiles.FEW
        rows, columns = ((16, 32, 64), (32, 64)) if few else ((64, 128), (32, 64, 128))
        told = []
        for r, c, warps, stages in itertools.product(
            rows, columns, (4, 8), (2,) if few else (2, 3)
        ):
            if r * c * (d if few else 1) > 2**14 or (not few and (r < 128) == (warps == 8)):
                continue
            _tiles.sides = lambda *_, tile=_tiles.Sides(r, c, warps, stages): tile
            layers.clear_cache()
            try:
                told.append((ours(x, tries=3), r, c, warps, stages))
            except Exception as error:  # what does not fit on chip
                print("   ", r, c, warps, stages, str(error).splitlines()[0][:90])
        for line in sorted(told)[:5]:
            print(f"n = {n}, d = {d}: {1e3 * line[0]:.2f} ms", line[1:], flush=True)
    _tiles.sides = before
    layers.clear_cache()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tune", action="store_true")
    asked = parser.parse_args()
    if asked.tune:
        tune()
    rows = []
    for n, d, systems in SIZES:
        x = tokens(n, d, systems)
        begun = time.perf_counter()
        row = {"n": n, "d": d, "systems": systems, "ours": ours(x), "torch": theirs(x)}
        row["ratio"] = row["torch"] / row["ours"]
        row["TFLOP/s"] = 4 * n * n * d * systems * LAYERS / row["ours"] / 1e12
        rows.append(row)
        print(
            {k: float(f"{v:.3g}") for k, v in row.items()},
            f"{time.perf_counter() - begun:.1f} s",
            flush=True,
        )
    many = [velocity(n) for n in (12_500, 50_000, 100_000)]
    print(many, flush=True)
    whole = engines()
    told = {f"{n}, {d}": errors(n, d) for n, d in ((256, 3), (256, 64), (1024, 16), (512, 128))}
    print(json.dumps(told, indent=1))
    if asked.out:
        told = {"rows": rows, "velocities": many, "engines": whole, "errors": told}
        told = {"card": jax.devices()[0].device_kind, "jax": jax.__version__} | told
        asked.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

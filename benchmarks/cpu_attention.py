"""Ensembles of middle and large systems on a CPU: whole ensembles (drawing and all) against a loop
around torch's own fused attention, on one core and on two, in turn; and the errors of both against
float64.

python benchmarks/cpu_attention.py --out benchmarks/results/DATE-cpu-attention.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
from timing import keep

BETA, H, LAYERS = 4.0, 0.1, 60
SIZES = (  # n, d, systems
    *((64, 64, 64), (128, 64, 32), (256, 64, 16), (512, 64, 8), (1024, 64, 4), (2048, 64, 2)),
    *((256, 16, 16), (256, 128, 16), (1024, 16, 4)),
)


def tokens(n: int, d: int, systems: int) -> np.ndarray:
    """Uniform tokens."""
    x = np.random.default_rng(0).normal(size=(systems, n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def measured(n: int, d: int, systems: int, times: int, engines: list[str]) -> dict[str, float]:
    """The least seconds of each way, on the wall and of all cores, one after the other in every
    round.
    """
    import torch

    import tokenflock as flock
    from tokenflock.dynamics import SelfAttention
    from tokenflock.observables import MeanCosine
    from tokenflock.solvers import Layer
    from tokenflock.starts import Uniform

    start = torch.tensor(tokens(n, d, systems))[:, None]

    def theirs() -> None:
        y = start
        for _ in range(LAYERS):
            said = torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=BETA)
            y = torch.nn.functional.normalize(y + H * said, dim=-1)

    def ours(engine: str) -> str:
        result = flock.ensemble(
            SelfAttention(beta=BETA),
            Uniform(n=n, d=d),
            repeats=systems,
            t=LAYERS * H,
            frames=2,
            observe=[MeanCosine()],
            solver=Layer(h=H),
            tolerance=None,  # the engine alone; pilot.py has the check
            engine=engine,
        )
        return str(result.attrs["engine"])

    ways = {"torch": theirs} | {engine: lambda engine=engine: ours(engine) for engine in engines}
    names = {name: way() for name, way in ways.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            wall, cores = time.perf_counter(), time.process_time()
            way()
            found[name].append((time.perf_counter() - wall, time.process_time() - cores))
    told: dict = {"n": n, "d": d, "systems": systems, "engine": names[engines[0]]}
    for word, which in (("", 0), (", all cores", 1)):
        least = {name: min(pair[which] for pair in pairs) for name, pairs in found.items()}
        told |= {f"{name}{word}": seconds for name, seconds in least.items()}
        told |= {f"torch / {name}{word}": least["torch"] / least[name] for name in engines}
    return told


def errors(n: int, d: int, count: int) -> dict[str, float]:
    """Largest errors of coordinates after so many layers against float64: by tiles, by matrices."""
    import jax
    import jax.numpy as jnp

    from tokenflock.dynamics import SelfAttention
    from tokenflock.engines.tiled import tiled
    from tokenflock.precision import precision

    def layers(way: str, dtype: str) -> np.ndarray:
        with precision(dtype):
            law = SelfAttention(beta=jnp.asarray(BETA, dtype))
            law = tiled(law, True, False) if way == "tiles" else law
            w, h, t = (jnp.asarray(a, dtype) for a in (np.full(n, 1 / n), H, 0.0))

            def layer(_, x):
                for part in law.sublayers:
                    x = part.layer(t, x, w, h)
                return x

            run = jax.jit(jax.vmap(lambda x: jax.lax.fori_loop(0, count, layer, x)))
            return np.asarray(run(jnp.asarray(tokens(n, d, 2), dtype)), np.float64)

    exact = layers("plain", "float64")
    return {way: float(np.abs(layers(way, "float32") - exact).max()) for way in ("tiles", "plain")}


def child(args: argparse.Namespace) -> None:
    """One row on the first cores, in a process of its own."""
    os.sched_setaffinity(0, range(args.cores))
    import torch

    torch.set_num_threads(args.cores)
    n, d, systems = args.row
    told = measured(n, d, systems, args.times, args.engines)
    print(json.dumps(told | {"cores": args.cores}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--cores", type=int, help="run one row on so many")
    parser.add_argument("--row", type=int, nargs=3)
    parser.add_argument("--rows", type=int, nargs=2, default=(0, len(SIZES)))
    parser.add_argument("--engines", nargs="+", default=["auto"])
    parser.add_argument("--errors", action="store_true", help="errors after 100 layers as well")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.cores:
        child(args)
        return
    rows = []
    for row in SIZES[slice(*args.rows)]:
        for cores in (1, 2):
            asked = ["--cores", cores, "--row", *row, "--times", args.times, "--engines"]
            command = [sys.executable, __file__, *map(str, asked), *args.engines]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    told: dict = {"date": str(date.today()), "layers": LAYERS, "rows": rows}
    if args.errors:
        told["errors"] = {f"{n}, {d}": errors(n, d, 100) for n, d in ((256, 64), (1024, 16))}
    keep(told, args.out)


if __name__ == "__main__":
    main()

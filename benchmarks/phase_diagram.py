"""Phase diagrams: our engines against the plain loop of the field, in one run on one device.

    python benchmarks/phase_diagram.py
    # this machine: CPU, or the GPU if there is one
    python benchmarks/phase_diagram.py --betas 9 --repeats 256 --d 2,8,32

The baseline is what the published script does: one value of beta at a time, float64, a Python loop
of batched products with softmax and normalise, statistics at 200 times, in torch on the same
device; a second, tight one leaves out its waste. They run a few betas and are scaled to all of them
(their cost is linear in them). Ours runs everything, the drawing of the tokens included. The best
of several is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.6")  # torch needs room beside it

import jax
import numpy as np
import torch
from timing import best

import tokenflock as flock
from tokenflock.dynamics import Attention, SelfAttention
from tokenflock.matrices import Ginibre, Per, RandomMatrices, Value
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

N, H, DELTA = 32, 0.1, 1e-3
CLOCK = 1.98e9  # of an H100 or H200 at work, in cycles a second


def baseline(
    d: int, beta: float, repeats: int, steps: int, device: str, tight: bool, general: bool
) -> list[float]:
    """The plain loop: pair density at 200 times for one beta.

    The published script builds the mask of pairs i != j on the host at each of the 200 times and
    indexes with it; `tight` builds it once on the device, which is what a careful author would do.
    """
    x = torch.nn.functional.normalize(
        torch.randn(repeats, N, d, dtype=torch.float64, device=device), dim=-1
    )
    B = V = None
    if general:
        G1, G2, G3 = (
            torch.randn(repeats, d, d, dtype=torch.float64, device=device) for _ in range(3)
        )
        B, V = G1 @ G2 / d**0.5, G3 @ G3.transpose(1, 2) / d**0.5
    looks = set(np.linspace(0, steps, 200).round().astype(int).tolist())
    other = ~torch.eye(N, dtype=torch.bool, device=device).expand(repeats, -1, -1)
    found = []
    for step in range(steps + 1):
        G = x @ x.transpose(1, 2)
        if step in looks:
            mask = other if tight else ~torch.eye(N).bool().expand(repeats, -1, -1)
            met = (
                ((G > 1 - DELTA) & mask).sum() / mask.sum()
                if tight
                else (G[mask] > 1 - DELTA).double().mean()
            )
            found.append(met.item())
        S = G if B is None else x @ B @ x.transpose(1, 2)
        moved = torch.softmax(beta * S, dim=-1) @ x
        x = torch.nn.functional.normalize(x + H * (moved if V is None else moved @ V), dim=-1)
    if device == "cuda":
        torch.cuda.synchronize()
    return found


def ours(d: int, betas: np.ndarray, repeats: int, steps: int, **options):
    when = {"t": steps * H, "frames": 200, "solver": Layer(h=H), "tolerance": None}
    return flock.ensemble(
        SelfAttention(), Uniform(n=N, d=d), over={"beta": betas}, repeats=repeats, **when, **options
    )


def general(d: int, betas: np.ndarray, repeats: int, steps: int, per: Per = Per.SYSTEM, **options):
    """A general V: no rotation is possible, every system (or cell) has its own matrices."""
    return flock.ensemble(
        Attention(),
        Uniform(n=N, d=d),
        over={"beta": betas},
        repeats=repeats,
        t=steps * H,
        frames=200,
        solver=Layer(h=H),
        tolerance=None,  # the engine alone; pilot.py has the check
        matrices=RandomMatrices(kernel=Ginibre(), value=Value.WISHART, per=per),
        **options,
    )


def ceilings(device: str) -> dict[str, float]:
    """What this device can do, measured: exponentials a second, single-precision products a second,
    bytes a second.
    """
    big = torch.rand(1 << 26, device=device)
    side = 8192 if device == "cuda" else 2048
    a = torch.rand(side, side, device=device)

    def timed(work, count):
        def synchronised():
            work()
            if device == "cuda":
                torch.cuda.synchronize()

        return count / best(synchronised, 5)

    torch.backends.cuda.matmul.allow_tf32 = True
    rate = timed(lambda: torch.exp_(big.mul_(0.1)), big.numel())
    if (
        device == "cuda"
        # torch's exponential waits for memory; the chip has 16 special function units a
        # multiprocessor
    ):
        rate = 16.0 * torch.cuda.get_device_properties(0).multi_processor_count * CLOCK
    return {
        "exponentials": rate,
        "flops": timed(lambda: a @ a, 2 * side**3),
        "bytes": timed(lambda: big.clone(), 8 * big.numel()),
    }


def report(
    d: int,
    label: str,
    seconds: float,
    bases: tuple[float, float],
    total: int,
    engine: str,
    limits: dict,
) -> dict:
    """One row: ratio, rate, and the share of the binding limit."""
    wide = min(d, N) if label == "isotropic" else d
    pairs = N * (N - 1) / 2 if engine.startswith("lanes") else N * N
    need = {
        "exponentials": pairs,
        "flops": 4.0 * N * N * wide + (0 if label == "isotropic" else 4.0 * N * wide * wide),
    }
    shares = {name: need[name] * total / seconds / limits[name] for name in need}
    binding = max(shares, key=shares.get)
    row = {
        "d": d,
        "law": label,
        "seconds": seconds,
        "baseline_seconds": bases[0],
        "ratio": bases[0] / seconds,
        "tight_baseline_seconds": bases[1],
        "tight_ratio": bases[1] / seconds,
        "system_steps_per_second": total / seconds,
        "engine": engine.partition(":")[0],
        "limit": binding,
        "share": shares[binding],
    }
    print(
        f"d = {d:<5} {label:<10} {seconds:8.3f} s   baseline {bases[0]:7.1f} s, ratio"
        f" {row['ratio']:6.1f}   tight baseline {bases[1]:7.1f} s, ratio {row['tight_ratio']:6.1f} "
        f"  {total / seconds:.3g} system-steps/s   {100 * row['share']:.0f} % of the limit by"
        f" {binding}   {row['engine']}",
        flush=True,
    )
    return row


def contributions(dimensions: list[int], betas: int, repeats: int, steps: int) -> list[dict]:
    """What each way gives, in microseconds a system-step: XLA, the compiled loop, and settling on
    top of either.
    """
    grid, total, rows = np.linspace(0.1, 9, betas), betas * repeats * steps, []
    for d in dimensions:
        row = {"d": d}
        for engine in ("batch", "lanes"):
            for settle in (False, True):
                seconds = best(
                    partial(ours, d, grid, repeats, steps, engine=engine, settle=settle), 3
                )
                row[f"{engine}{', settling' if settle else ''}"] = 1e6 * seconds / total
        rows.append(row)
        print(
            f"d = {d:<5} us a system-step: "
            + "   ".join(f"{k} {v:.3f}" for k, v in row.items() if k != "d"),
            flush=True,
        )
    return rows


def linearity(betas: int, repeats: int, steps: int) -> dict[str, list[float]]:
    """Cost against repeats, betas and steps, each halved and halved again.

    Settling off, so that all systems do all steps.
    """
    found = {}
    for name in ("repeats", "betas", "steps"):
        row = []
        for share in (4, 2, 1):
            size = {"betas": betas, "repeats": repeats, "steps": steps}
            size[name] //= share
            grid = np.linspace(0.1, 9, size["betas"])
            row.append(
                best(
                    lambda grid=grid, size=size: ours(
                        3, grid, size["repeats"], size["steps"], settle=False
                    ),
                    3,
                )
            )
        found[name] = row
        print(
            f"{name:<8} quarter, half, whole: " + ", ".join(f"{one:.3f} s" for one in row),
            flush=True,
        )
    return found


def _baselines(betas: np.ndarray, *options) -> None:
    d, *rest = options
    for beta in betas:
        baseline(d, beta, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--d", default="2,3,8,32,128,512,1024")
    parser.add_argument("--betas", type=int, default=90)
    parser.add_argument("--repeats", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--baseline-betas", type=int, default=2)
    parser.add_argument("--best-of", type=int, default=3)
    parser.add_argument(
        "--general", default="128", help="dimensions to run with a general V as well"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"
    name = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"{platform.processor() or 'CPU'} x{torch.get_num_threads()}"
    )
    grid, total = (
        np.linspace(0.1, 9, options.betas),
        options.betas * options.repeats * options.steps,
    )
    limits = ceilings(device)
    print(
        f"{name}: " + ", ".join(f"{key} {value:.3g}/s" for key, value in limits.items()), flush=True
    )
    rows, size = [], (options.repeats, options.steps, device)
    for d in [int(part) for part in options.d.split(",")]:
        some = np.linspace(0.1, 9, options.baseline_betas)
        for label, work in (("isotropic", ours), ("general", general)):
            if label == "isotropic" or str(d) in options.general.split(","):
                bases = [
                    best(partial(_baselines, some, d, *size, tight, label == "general"), 1)
                    * options.betas
                    / len(some)
                    for tight in (False, True)
                ]
                engine = work(d, grid[:2], 2, 10).attrs["engine"]
                seconds = best(
                    partial(work, d, grid, options.repeats, options.steps), options.best_of
                )
                rows.append(report(d, label, seconds, bases, total, engine, limits))
    lines = linearity(options.betas, options.repeats, options.steps)
    parts = [] if device == "cuda" else contributions([2, 8, 32, 1024], 9, 256, options.steps)
    if options.out:
        facts = {
            "device": name,
            "date": time.strftime("%Y-%m-%d"),
            "jax": jax.__version__,
            "torch": torch.__version__,
        }
        sizes = {
            "n": N,
            "h": H,
            "betas": options.betas,
            "repeats": options.repeats,
            "steps": options.steps,
        }
        measured = {"ceilings": limits, "rows": rows, "linearity": lines, "contributions": parts}
        options.out.write_text(json.dumps(facts | sizes | measured, indent=1))
        print(f"saved {options.out}")


if __name__ == "__main__":
    main()

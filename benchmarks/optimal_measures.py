"""Minimisers of Figure 3 of arXiv 2501.03096 (400 tokens on S^2): a quasi-Newton method beside
20,000 plain explicit steps.

python benchmarks/optimal_measures.py --out benchmarks/results/optimal-measures.json

For each of the four matrices the float32 torch loop of the published update runs first; then
`optimal_tokens` starts from the same tokens, and the clock stops at the first evaluation whose
energy is not above the one that the loop reached.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from tokenflock.meanfield import optimal_tokens

N, STEPS = 400, 20_000
CASES = {
    "uniform": ((1.0, 1.0, 1.0), 0.1),
    "near two poles": ((1.0, 0.25, 1.0), 0.5),
    "two poles": ((1.0, 0.0, 1.0), 0.75),
    "great circle": ((0.0, 0.0, 1.0), 0.75),
}


def start() -> np.ndarray:
    x = np.random.default_rng(42).normal(size=(N, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def plain(D: np.ndarray, tau: float, steps: int) -> tuple[float, np.ndarray]:
    """(seconds, tokens) of x <- normalize(x - (tau/n) e^{x D x'} x D) in float32."""
    x, B = torch.tensor(start(), dtype=torch.float32), torch.tensor(D, dtype=torch.float32)
    began = time.perf_counter()
    for _ in range(steps):
        x = x - (tau / N) * (torch.exp(x @ B @ x.T) @ (x @ B))
        x = x / torch.linalg.norm(x, dim=1, keepdim=True)
    return time.perf_counter() - began, x.double().numpy()


def energy(x: np.ndarray, D: np.ndarray) -> float:
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return float(np.exp(x @ D @ x.T).mean())


def ours(D: np.ndarray, target: float, tries: int = 7) -> tuple[float, int, float]:
    """(seconds to the target, evaluations to it, least energy found), the quickest of several
    tries.
    """
    return min((one_try(D, target) for _ in range(tries)), key=lambda row: row[0])


def one_try(D: np.ndarray, target: float) -> tuple[float, int, float]:
    found = optimal_tokens(D, start=start(), steps=500)
    met = found.energies.values <= target
    first = int(np.argmax(met)) if met.any() else len(met) - 1
    seconds = float(found.seconds[first]) if met.any() else float("nan")
    return seconds, first + 1, float(found.energies.min())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for name, (diagonal, tau) in CASES.items():
        D = np.diag(diagonal)
        seconds, x = plain(D, tau, options.steps)
        target = energy(x, D)
        mine, evaluations, last = ours(D, target)
        row = {
            "case": name,
            "D": diagonal,
            "tau": tau,
            "torch_seconds": seconds,
            "torch_energy": target,
            "seconds": mine,
            "evaluations": evaluations,
            "energy": last,
            "times_sooner": seconds / mine,
        }
        rows.append(row)
        print(
            f"{name:<15} torch {seconds:7.2f} s to E = {target:.10f}   ours {1e3 * mine:7.1f} ms,"
            f" {evaluations} evaluations (ends at {last:.10f})   {row['times_sooner']:6.1f} times"
            " sooner",
            flush=True,
        )
    if options.out:
        device = platform.processor() or platform.machine()
        facts = {
            "device": f"CPU, {device}",
            "date": time.strftime("%Y-%m-%d"),
            "torch": torch.__version__,
            "n": N,
        }
        facts |= {"steps": options.steps, "torch_threads": options.threads}
        options.out.write_text(json.dumps(facts | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

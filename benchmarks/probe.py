"""What measuring a model costs beside running it: 512 tokens through 48 layers of width 768, fresh
weights.

python benchmarks/probe.py --out benchmarks/results/probe.json

Forward pass and measurements in turns, so that other work on the machine hits both; the best turn
of each counts, as time on the clock and as time of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch
import transformers
import xarray as xr

from tokenflock.probing import survey
from tokenflock.verbs.measure import measure


def timed(work) -> np.ndarray:
    """Seconds on the clock and of the processor."""
    before = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    config = transformers.AlbertConfig(
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        num_hidden_layers=args.layers,
        vocab_size=1000,
    )
    torch.manual_seed(0)
    model = transformers.AlbertModel(config).eval()
    ids = torch.randint(0, 1000, (1, args.tokens))

    def forward():
        with torch.inference_mode():
            return model(ids, output_hidden_states=True)

    x = (
        torch.stack(forward().hidden_states, 1).numpy().astype(np.float64)
    )  # probe measures in double precision
    block = xr.Dataset({"x": (("prompt", "layer", "token", "coord"), x)})
    works = {"forward": forward} | {
        one.name: lambda one=one: measure(block, one) for one in survey()
    }
    works["survey"] = lambda: measure(block, survey())
    for work in works.values():
        work()  # compiled
    turns = np.min([[timed(work) for work in works.values()] for _ in range(args.turns)], axis=0)
    best = {name: [round(float(seconds), 3) for seconds in row] for name, row in zip(works, turns)}
    found = {
        "date": str(date.today()),
        "device": f"CPU, {os.cpu_count()} cores",
        "torch": torch.__version__,
        "tokens": args.tokens,
        "layers": args.layers,
        "width": 768,
        "turns": args.turns,
        "seconds_clock_and_processor": best,
        "survey_over_forward": [round(a / b, 3) for a, b in zip(best["survey"], best["forward"])],
    }
    print(json.dumps(found, indent=1))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Compute the phase diagrams that come with the lab, and write their numbers.

    python tools/lab_diagrams.py

Self-attention with n = 32 tokens by the layer map (h = 0.1), as in Figure 3 of arXiv 2312.10794,
for the dimensions that a page of the lab holds.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.laboratory.diagrams import chart
from tokenflock.laboratory.ready import DIAGRAMS
from tokenflock.laboratory.specimens import DIMENSIONS
from tokenflock.starts import Uniform

HOME = Path(__file__).parents[1] / "src" / "tokenflock" / "laboratory" / "static" / DIAGRAMS
REPEATS = 512


def main() -> None:
    """Write the numbers of all diagrams."""
    charts = []
    for d in DIMENSIONS:
        result = flock.phase_diagram(
            SelfAttention(),
            Uniform(n=32, d=d),
            beta=np.linspace(0.2, 9, 45),
            t=30,
            frames=51,
            repeats=REPEATS,
            seed=0,
        )
        title = f"share of pairs that have met: self-attention, n = 32, d = {d}"
        charts.append(chart(result, title=title))
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in charts)
    HOME.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the check of time stepping costs: an ensemble with its pilot beside the same one without.

    python benchmarks/pilot.py            seconds and their ratio, best of three, for each size

The pilot runs at most eight systems of each cell, so its share falls with the number of repeats.
"""

from __future__ import annotations

from functools import partial

from timing import best

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform

BETAS = [1.0, 2.0, 4.0, 6.0, 9.0]
CASES = (
    ("SA, RK4(h=0.1)", SelfAttention(), RK4(h=0.1), 256),
    ("SA, RK4(h=0.1)", SelfAttention(), RK4(h=0.1), 2048),
    ("SA, Layer(h=0.1)", SelfAttention(), Layer(h=0.1), 256),
    ("SA, Layer(h=0.1)", SelfAttention(), Layer(h=0.1), 2048),
    ("USA, peak clock, RK4(h=0.1)", Unnormalised(clock="peak"), RK4(h=0.1), 256),
)


def main() -> None:
    """Print the table."""
    print(f"{'n = 32, d = 3, t = 30, 5 cells':34} repeats  unchecked  with pilot  ratio")
    for name, law, solver, repeats in CASES:
        start, options = Uniform(n=32, d=3), {"repeats": repeats, "t": 30, "solver": solver}
        run = partial(flock.ensemble, law, start, over={"beta": BETAS}, **options)
        plain, whole = best(partial(run, tolerance=None), 3), best(run, 3)
        print(f"{name:34} {repeats:7}  {plain:7.2f} s  {whole:8.2f} s  {whole / plain:5.2f}")


if __name__ == "__main__":
    main()

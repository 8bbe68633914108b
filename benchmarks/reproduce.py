"""Time a reproduction item by item, and keep its claims.

python benchmarks/reproduce.py perspective --scale paper --out perspective-paper.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import jax

import tokenflock as flock
from tokenflock.papers.items import find


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="papers or items; all unless given")
    parser.add_argument("--scale", default="quick", choices=("quick", "paper"))
    parser.add_argument("--out", type=Path, help="a .json file for timings and claims")
    parser.add_argument("--data", help="a folder for the numbers")
    options = parser.parse_args()
    began, rows = time.perf_counter(), []
    for item in find(options.names):
        report = flock.reproduce(item.name, scale=options.scale, figures=False, out=options.data)
        (outcome,) = report.outcomes
        rows.append(
            {"item": item.name, "seconds": round(outcome.seconds, 2), "claims": [claim.as_json() for claim in outcome.claims]}
        )
        verdicts = [claim.verdict for claim in outcome.claims]
        count = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
        print(f"{item.name:36} {outcome.seconds:8.1f} s   {count}", flush=True)
        for claim in outcome.claims:
            if claim.verdict == "fails":
                print(f"    {claim.id}: measured {claim.measured}, must be in {claim.interval}; {claim.note}", flush=True)
        total = time.perf_counter() - began
        if options.out:
            head = {"scale": options.scale, "device": jax.devices()[0].device_kind, "jax": jax.__version__}
            options.out.write_text(json.dumps(head | {"seconds": round(total, 1), "items": rows}, indent=1) + "\n")
    print(f"{'all':36} {total:8.1f} s")


if __name__ == "__main__":
    main()

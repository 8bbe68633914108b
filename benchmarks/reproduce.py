"""Time a reproduction item by item, and keep its claims.

python benchmarks/reproduce.py perspective --scale paper --out perspective-paper.json --report
report
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import jax

import tokenflock as flock
from tokenflock.reproduction.outcome import Outcome
from tokenflock.reproduction.reproduce import Audience


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="papers or items; all unless given")
    parser.add_argument("--scale", default="quick", choices=("quick", "paper"))
    parser.add_argument("--out", type=Path, help="a .json file for timings and claims")
    parser.add_argument(
        "--report", help="a folder for the whole report: drawing and writing are timed too"
    )
    options = parser.parse_args()
    began, rows = time.perf_counter(), []

    def ends(outcome: Outcome, remembered: bool) -> None:
        tell(outcome)
        claims = [claim.as_json() for claim in outcome.claims]
        rows.append(
            {"item": outcome.item.name, "seconds": round(outcome.seconds, 2), "claims": claims}
        )
        if options.out:
            head = {
                "scale": options.scale,
                "device": jax.devices()[0].device_kind,
                "jax": jax.__version__,
            }
            total = round(time.perf_counter() - began, 1)
            options.out.write_text(
                json.dumps(head | {"seconds": total, "items": rows}, indent=1) + "\n"
            )

    flock.reproduce(
        options.names,
        scale=options.scale,
        out=options.report,
        again=True,
        watcher=Audience(ends=ends),
    )
    print(f"{'all':36} {time.perf_counter() - began:8.1f} s")


def tell(outcome: Outcome) -> None:
    verdicts = [claim.verdict for claim in outcome.claims]
    count = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    print(f"{outcome.item.name:36} {outcome.seconds:8.1f} s   {count}", flush=True)
    for claim in outcome.claims:
        if claim.verdict == "fails":
            print(
                f"    {claim.id}: measured {claim.measured}, must be in {claim.interval};"
                f" {claim.note}",
                flush=True,
            )


if __name__ == "__main__":
    main()

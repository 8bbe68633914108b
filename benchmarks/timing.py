"""The least of several timings, which other work disturbed least; and keeping what came out."""

from __future__ import annotations

import json
import time
from pathlib import Path


def best(work, times: int) -> float:
    """The least wall-clock time of several runs, after one to warm up."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def keep(told: dict, out: Path | None) -> None:
    """Show what was measured, and keep it where that is asked."""
    text = json.dumps(told, indent=1)
    print(text)
    if out:
        out.write_text(text + "\n")

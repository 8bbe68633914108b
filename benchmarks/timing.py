"""The least of several timings: the one that other work disturbed least."""

from __future__ import annotations

import time


def best(work, times: int) -> float:
    """The least wall-clock time of several runs, after one to warm up."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)

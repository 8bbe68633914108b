"""What happened in a run, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.cli.console import say


def reach(dynamics: Any) -> float | None:
    """The distance within which tokens of a law on R^d are one cluster.

    None where directions count.
    """
    from tokenflock.dynamics._schemes import Scheme
    from tokenflock.spaces import Euclidean

    free = (
        dynamics is not None
        and isinstance(dynamics.space, Euclidean)
        and not isinstance(dynamics, Scheme)
    )
    return 0.01 if free else None


def tell(run: xr.Dataset) -> None:
    """Print what a run was, how its energy moved, and when clusters merged."""
    import tokenflock as flock
    from tokenflock.verbs.measure import dynamics_of

    start, end = run.isel(time=0), run.isel(time=-1)
    n, d = run.sizes["particle"], run.sizes["coord"]
    title = run.attrs["title"].removeprefix("tokenflock: ")
    say(f", n = {n}, d = {d}, {run.attrs['convention']}", title=title)
    if "stopped" in run.attrs:
        say(f"  stopped by {run.attrs['stopped']}")
    for shown in {"energy", "log_energy"} & set(run):
        name = run[shown].attrs.get("long_name", "").partition("(")[2].rstrip(")")
        before, after = float(start[shown]), float(end[shown])
        label = shown.replace("_", " ")
        say(
            f"  {label:<9} {before:.6g} at t = 0, {after:.6g} at t = {float(end.time):.6g}"
            f" (convention {name})"
        )
    radius = reach(dynamics_of(run))
    merges = flock.merges(run, radius=radius)
    first = int(merges.before[0]) if merges.sizes["merge"] else None
    last = int(merges.after[-1]) if first else None
    if first is None:
        say(
            "  clusters  no two clusters merged"
            + ("" if radius is None else f" (within {radius:g} of each other)")
        )
        return
    say(f"  clusters  {first} at t = 0, {last} at t = {float(end.time):.6g}")
    shown = merges.isel(merge=slice(-8, None))
    hidden = merges.sizes["merge"] - shown.sizes["merge"]
    if hidden:
        say(f"  merges    {hidden} before t = {float(shown.time[0]):.4g}, then")
    for k in range(shown.sizes["merge"]):
        merge = shown.isel(merge=k)
        counts = f"{int(merge.before)} -> {int(merge.after)}"
        say(
            f"    t = {float(merge.time):<10.4g} {counts:<10} largest holds"
            f" {100 * float(merge.largest):.0f} %"
        )


def tell_overflow(run: xr.Dataset, observed: Sequence[Any]) -> None:
    """Say which observables left the numbers."""
    for name in (observable.name for observable in observed if not observable.dims):
        bad = ~np.isfinite(run[name].values)
        if bad.any():
            say(
                f"  {name} is not finite in {bad.sum()} of {bad.size} frames: it overflowed; take"
                " --observe energy:log=true, --observe energy:convention=staircase or a smaller"
                " --beta"
            )


def tell_waiting(run: xr.Dataset) -> None:
    """Print how long the longest pause between two merges was, against the time of all merges
    before it.
    """
    import tokenflock as flock

    times = flock.merges(run).time.values
    if len(times) < 2:
        return
    gaps = times[1:] - times[:-1]
    k = int(gaps.argmax())
    say(
        f"  metastability: all merges up to t = {times[k]:.3g} took place at once; then nothing"
        f" merged for {gaps[k]:.3g} units of time ({gaps[k] / times[k]:.0f} times as long)"
    )

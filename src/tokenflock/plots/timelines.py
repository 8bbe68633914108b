"""Energy and number of clusters over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

from tokenflock.observables.cluster_count import ClusterCount
from tokenflock.plots._story import Story, literal, story
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots.styles import Theme, canvas, look, root_of

_FEW = 8  # up to so many clusters the axis of counts is linear
_LOW, _FLAT = 0.75, 0.15  # an energy that stays below, and moves less, has an axis of its own
_SHALLOW = 0.8  # inches: a lower panel has numbers at powers of ten only
_MARGIN = 0.06  # of the panel's height, for ticks of merges


def timeline(
    result: xr.Dataset,
    *,
    figure: FigureBase | None = None,
    log_time: bool = False,
    delta: float | None = None,
    title: bool = True,
) -> FigureBase:
    """Energy and number of clusters over time, one above the other; a short tick marks each merge
    of clusters.

    The energy is in the convention `staircase`, one at consensus, so that plateaus can be read off.
    Where the dynamics has no beta, the order parameter takes its place, and the label says so.

    Args:
      result: a run, or a model.
      figure: a figure or subfigure to draw in; a new one unless given.
      log_time: logarithmic time.
      delta: tokens whose cosine is at least 1 - delta are in one cluster; 1e-3 unless given, and
        0.1 for a model.
      title: say what ran.
    """
    run = story(result)
    delta = run.delta if delta is None else delta
    with look(figure) as theme:
        figure = figure if figure is not None else canvas(4.6, 3.4)
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [1.25, 1]})
        draw_height(above, run, theme)
        draw_counts(below, run, theme, delta)
        merged = run.merged(delta)
        for ax in (above, below):
            ax.vlines(
                merged,
                0,
                _MARGIN,
                transform=ax.get_xaxis_transform(),
                color=theme.palette[2],
                lw=0.9,
                label="merges",
            )
        if len(merged):
            above.set_title("ticks: merges", loc="right", fontsize="small", color=theme.palette[2])
        time_axis(above, run, log_time, label=False)
        time_axis(below, run, log_time)
        if title:
            above.set_title(run.heading)
        figure.align_ylabels([above, below])
    return figure


def draw_height(ax: Axes, run: Story, theme: Theme) -> None:
    """The energy (or order parameter) of every frame."""
    height = run.height()
    ax.plot(run.times, height.values, color=theme.palette[0], **_stroke(run))
    ax.set_ylabel(literal(height.attrs["long_name"]).replace(" (", "\n("))
    low, high = float(height.min()), float(height.max())
    flat = high < _LOW and high - low < _FLAT  # e.g. tokens that flee each other
    if low >= 0 and high <= 1 + 1e-6 and not flat:
        ax.set_ylim(0, 1.04)
        ax.axhline(1, color=theme.faint, lw=0.7, zorder=0)
    else:
        pad = 0.08 * max(high - low, 1e-3)
        ax.set_ylim(low - pad, high + pad)


def draw_counts(ax: Axes, run: Story, theme: Theme, delta: float) -> None:
    """The number of clusters of every frame, as steps."""
    counts = run.measured(ClusterCount(delta)).values
    ax.plot(run.times, counts, color=theme.palette[0], drawstyle="steps-post", **_stroke(run))
    ax.set_ylabel("clusters" if delta < 0.01 else f"clusters\n(cosine ≥ {1 - delta:g})")
    if counts.max() <= _FEW:
        ax.set_ylim(0, counts.max() + 0.6)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        return
    ax.set_yscale("log")
    ax.set_ylim(0.75, counts.max() * 1.3)
    low = ax.get_position().height * root_of(ax).get_size_inches()[1] < _SHALLOW
    ticks = [step * 10**power for power in range(6) for step in ((1,) if low else (1, 2, 5))]
    ax.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if tick <= counts.max() * 1.3]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(ScalarFormatter())


def _stroke(run: Story) -> dict[str, Any]:
    """A line through the frames of a run. Layers of a model are dots: nothing is between them."""
    if run.of_model:
        size = float(np.clip(60 / run.frames, 1.6, 4))
        return {"marker": "o", "linestyle": "none", "ms": size, "clip_on": False}
    return {"marker": "o" if run.frames == 1 else None}


def chapters(run: Story, count: int) -> np.ndarray:
    """Frames that tell a run in a few pictures, the ends and equal steps of progress between.

    Progress is half the climb of the energy and half the fall of the logarithm of the number of
    clusters. Where it stands still, the middle of the stage is taken, and where there are too few
    stages, the middle of the widest gap.
    """
    falls = -np.log(np.minimum.accumulate(run.measured(ClusterCount(run.delta)).values))
    progress = (_share(run.height().values) + _share(falls)) / 2
    picked = {0, run.frames - 1}
    for target in progress[0] + (progress[-1] - progress[0]) * np.arange(1, count - 1) / (
        count - 1
    ):
        off = np.abs(progress - target)
        near = np.flatnonzero(off <= off.min() + 0.01)
        picked.add(int(near[len(near) // 2]))
    while len(picked) < min(count, run.frames):
        ends = np.array(sorted(picked))
        gap = int(np.argmax(np.diff(ends)))
        picked.add(int(ends[gap] + ends[gap + 1]) // 2)
    return np.array(sorted(picked))


def _share(values: np.ndarray) -> np.ndarray:
    """Values from 0 at their least to 1 at their greatest."""
    span = np.ptp(values)
    return (values - values.min()) / (span if span > 0 else 1)

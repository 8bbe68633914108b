"""One figure that tells a run."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

from tokenflock.errors import UserError
from tokenflock.plots._discs import colour_groups, discs
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, story
from tokenflock.plots.circles import CircleView
from tokenflock.plots.histograms import histogram
from tokenflock.plots.spheres import SphereView
from tokenflock.plots.styles import Theme, canvas, look
from tokenflock.plots.timelines import chapters, timeline

_PICTURES = 4


def overview(
    result: xr.Dataset, *, log_time: bool = False, clusters_at: float | None = None
) -> Figure:
    """A run at a glance: tokens at four times, energy and clusters over time, and the distribution
    of inner products.

    Args:
      result: a run, or a model, with d >= 2.
      log_time: logarithmic time.
      clusters_at: the time whose clusters give the colours; unless given see `trajectories`.
    """
    run = story(result)
    if run.d < 2:
        raise UserError(f"overview needs d >= 2, got d = {run.d}; use timeline")
    with look() as theme:
        figure = canvas(7.2, 5.3)
        above, below = np.asarray(figure.subfigures(2, 1, height_ratios=[1, 1.5]), object)
        left, right = below.subfigures(1, 2, width_ratios=[1.15, 1])
        frames = chapters(run, _PICTURES)
        note = _tokens(above, run, theme, frames, clusters_at)
        timeline(result, figure=left, log_time=log_time, title=False)
        ax = right.subplots()
        histogram(result, ax=ax, at=[float(run.times[frame]) for frame in frames], title=False)
        convention = f" ({run.convention})" if run.convention else ""
        figure.suptitle(f"{run.subject}{convention}{note}", x=0.012, ha="left")
    return figure


def _tokens(
    home: SubFigure, run: Story, theme: Theme, frames: np.ndarray, clusters_at: float | None
) -> str:
    """Tokens at each frame in a row. Returns what the title must say about the projection."""
    groups = colour_groups(run, clusters_at)
    make = CircleView if run.d == 2 else SphereView
    tail = 0 if run.d == 2 else max(1, run.frames // 40)
    note = ""
    for ax, frame, tokens in zip(
        np.atleast_1d(home.subplots(1, len(frames))), frames, discs(run, frames, groups)
    ):
        view = make(ax, run, theme, groups, Shot(tail=tail))
        view.show(int(frame), tokens)
        ax.set_title(run.moment(int(frame), convention=False), loc="center")
        note = view.note
    return f", {note}" if note else ""

"""The distribution of inner products between tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from tokenflock.observables.histogram import Histogram
from tokenflock.plots._story import Story, story
from tokenflock.plots._time_axis import edges, time_axis
from tokenflock.plots.styles import Theme, canvas, colour_bar, look
from tokenflock.plots.timelines import chapters

_COSINE = r"cosine $\langle x_i,\,x_j\rangle$"
_FAINTEST = 1e-4  # share of pairs below which the heat map shows nothing


def histogram(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: Sequence[float] | None = None,
    bins: int = 60,
    title: bool = True,
) -> Axes:
    """Distribution of the cosines of pairs i != j at several times, one ridge each, the earliest on
    top.

    Each ridge is scaled to its own peak, and the share of pairs in the highest bin is written
    beside it.

    Args:
      result: a run, or a model.
      ax: where to draw; a new figure unless given.
      at: times (or layers); unless given, five that tell the run: its ends and the stages between.
      bins: of [-1, 1].
      title: say what ran.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.2, 3.4).add_subplot()
        frames = chapters(run, 5) if at is None else np.unique([run.frame(value) for value in at])
        shares = run.measured(Histogram(bins), frames).values
        for row, (frame, share) in enumerate(zip(frames, shares)):
            _ridge(ax, len(frames) - 1 - row, run.moment(frame, convention=False), share, theme)
        ax.set(
            xlim=(-1, 1),
            ylim=(-0.08, len(frames) + 0.05),
            yticks=[],
            xticks=[-1, -0.5, 0, 0.5, 1],
            xlabel=_COSINE,
        )
        ax.spines["left"].set_visible(False)
        if title:
            ax.set_title(run.heading + (f" ({run.convention})" if run.convention else ""))
        _note_single(ax, run, theme)
    return ax


def histogram_over_time(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    bins: int = 80,
    log_time: bool = False,
    title: bool = True,
) -> Axes:
    """Distribution of the cosines of pairs i != j over time: a heat map of the share of pairs in
    each bin.

    Args:
      result: a run, or a model.
      ax: where to draw; a new figure unless given.
      bins: of [-1, 1].
      log_time: logarithmic time.
      title: say what ran.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        shares = run.measured(Histogram(bins)).values
        norm = LogNorm(_FAINTEST, 1)
        masked = np.ma.masked_less(shares.T, _FAINTEST)
        mesh = ax.pcolormesh(
            edges(run.times, log_time),
            np.linspace(-1, 1, bins + 1),
            masked,
            norm=norm,
            cmap=theme.sequential,
        )
        mesh.set_rasterized(True)
        colour_bar(ax, mesh, "share of pairs")
        ax.set(ylabel=_COSINE, ylim=(-1, 1), yticks=[-1, -0.5, 0, 0.5, 1])
        time_axis(ax, run, log_time)
        if title:
            ax.set_title(run.heading)
        _note_single(ax, run, theme)
    return ax


def _ridge(ax: Axes, base: int, moment: str, share: np.ndarray, theme: Theme) -> None:
    peak = share.max()
    borders = np.linspace(-1, 1, len(share) + 1)
    if peak > 0:
        ax.stairs(
            base + 0.66 * share / peak,
            borders,
            baseline=base,
            fill=True,
            color=theme.palette[0],
            alpha=0.35,
            lw=0,
        )
        ax.stairs(
            base + 0.66 * share / peak, borders, baseline=base, color=theme.palette[0], lw=0.9
        )
    ax.axhline(base, color=theme.faint, lw=0.6, zorder=0)
    ax.text(
        0.0, base + 0.82, moment, transform=ax.get_yaxis_transform(), va="center", color=theme.ink
    )
    if peak > 0:
        note = f"peak {100 * peak:.2g} %" if peak < 0.995 else "peak 100 %"
        ax.text(
            1.0,
            base + 0.82,
            note,
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            color=theme.soft,
        )


def _note_single(ax: Axes, run: Story, theme: Theme) -> None:
    if run.n == 1:
        ax.text(
            0.5,
            0.5,
            "one token: no pairs",
            transform=ax.transAxes,
            ha="center",
            va="center",
            color=theme.soft,
            bbox={"fc": theme.paper, "ec": "none"},
        )

"""The paths of tokens against time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from tokenflock.plots._discs import colour_groups, colours
from tokenflock.plots._story import Story, story
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots.styles import canvas, look

_NO_MEAN = 1e-2  # shorter means have no direction worth the name


def trajectories(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    log_time: bool = False,
    clusters_at: float | None = None,
    title: bool = True,
) -> Axes:
    """The path of every token against time, coloured by the cluster in which it ends.

    For d = 2 the angle, without jumps, in units of pi. For d > 2 the cosine to the final mean
    direction, or the first coordinate where the final mean has no direction.

    Args:
      result: a run, or a model.
      ax: where to draw; a new figure unless given.
      log_time: logarithmic time.
      clusters_at: the time whose clusters give the colours. Unless given it is the last; where all
        tokens are one cluster by then, the end of the longest stage with a few clusters. Where
        tokens are words of a model, the seven most frequent words have a colour each.
      title: say what ran.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        values, label = _heights(run)
        rgba = colours(theme, colour_groups(run, clusters_at))
        segments = np.stack(
            [np.broadcast_to(run.times[:, None], values.shape), values], axis=-1
        ).swapaxes(0, 1)
        width = float(np.clip(9 / np.sqrt(run.n), 0.35, 1.3))
        ax.add_collection(LineCollection(list(segments), colors=rgba, linewidths=width, alpha=0.85))
        time_axis(ax, run, log_time)
        low, high = values.min(), values.max()
        pad = max(0.04 * (high - low), 0.02)
        ax.set(ylim=(low - pad, high + pad), ylabel=label)
        if title:
            ax.set_title(run.heading)
    return ax


def _heights(run: Story) -> tuple[np.ndarray, str]:
    """What is drawn for each token (frames, n), and its label."""
    if run.d == 2:
        return _angles(run.x) / np.pi, r"angle $\theta\,/\,\pi$"
    mean = run.w @ run.x[-1]
    length = np.linalg.norm(mean)
    if length > _NO_MEAN:
        return run.x @ (mean / length), "cosine to the final mean direction"
    return run.x[..., 0], "first coordinate"


def _angles(x: np.ndarray) -> np.ndarray:
    """Angles without jumps in time, (frames, n).

    The circle is cut where its end state is emptiest, not amid a cluster.
    """
    angle = np.unwrap(np.arctan2(x[..., 1], x[..., 0]), axis=0)
    last = np.sort(np.mod(angle[-1], 2 * np.pi))
    gaps = np.diff(last, prepend=last[-1] - 2 * np.pi)
    cut = last[np.argmax(gaps)] - gaps.max() / 2
    angle -= 2 * np.pi * np.floor((angle[-1] - cut) / (2 * np.pi))
    return angle - 2 * np.pi * np.round(angle[-1].mean() / (2 * np.pi))

"""Tokens against the measure that they are samples of."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.special import gammaln

from tokenflock.errors import require
from tokenflock.plots._spread import ANGLES, NAMES, Spread, spread
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import canvas, look


def cloud(
    result: xr.Dataset,
    *,
    against: xr.Dataset | None = None,
    ax: Axes | None = None,
    at: float | None = None,
    bins: int = 60,
    title: bool = True,
) -> Axes:
    """A histogram of the tokens' angles at one time, and on it the density of a measure at the same
    time.

    On the circle it is the angle of each token; for d >= 3 the angle to the last coordinate
    direction, and the density is multiplied by the area of the ring at that angle. Tokens count
    with their weights.

    Args:
      result: a run.
      against: a result of `meanfield.evolve` in the same dimension, which reaches that time.
      ax: where to draw; a new figure unless given.
      at: the time; the last of the run unless given. The nearest frames are shown.
      bins: of the whole range of angles.
      title: say what ran.
    """
    run = story(result)
    require(bins >= 1, "bins", "1 or more", bins)
    kind, frame = "theta" if run.d == 2 else "latitude", run.frame(at)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 2.9).add_subplot()
        top = 2 if kind == "theta" else 1
        counts, borders = np.histogram(
            _angles(run, frame), bins=bins, range=(0, top * np.pi), weights=run.w / run.w.sum()
        )
        heights = counts / np.diff(borders)
        ax.stairs(heights, borders, fill=True, color=theme.palette[0], alpha=0.35, lw=0)
        ax.stairs(heights, borders, color=theme.palette[0], lw=0.8, label=f"{run.n} tokens")
        highest = heights.max()
        if against is not None:
            angle, density = _line(run, against, kind, float(run.times[frame]))
            ax.plot(angle, density, color=theme.palette[2], lw=1.5, label="mean field")
            highest = max(highest, density.max())
        ticks = {share: text for share, text in ANGLES.items() if share <= top}
        ax.set(
            xlim=(0, top * np.pi),
            ylim=(0, 1.08 * highest),
            xlabel=NAMES[kind],
            ylabel=r"density (rad$^{-1}$)",
        )
        ax.set_xticks(np.pi * np.array(list(ticks)), list(ticks.values()))
        ax.legend(loc="best")
        if title:
            ax.set_title(f"{run.heading}\n{run.moment(frame)}")
    return ax


def _angles(run: Story, frame: int) -> np.ndarray:
    x = run.x[frame]
    return (
        np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)
        if run.d == 2
        else np.arccos(np.clip(x[:, -1], -1, 1))
    )


def _line(run: Story, against: xr.Dataset, kind: str, time: float) -> tuple[np.ndarray, np.ndarray]:
    """The angle, and the density of the angle, of the measure."""
    measure = spread(against, **{kind: f"the tokens are in d = {run.d}"})
    require(measure.d == run.d, "against", f"a measure in d = {run.d}", f"d = {measure.d}")
    if measure.timed:
        low, high = measure.times[[0, -1]]
        slack = 1e-9 * max(1.0, abs(high))
        require(
            low - slack <= time <= high + slack,
            "against",
            f"a measure at t = {time:g}",
            f"one from {low:g} to {high:g}",
        )
        time = float(np.clip(time, low, high))
    frame = measure.frame(time if measure.timed else None)
    return measure.ring(frame) if kind == "theta" else (measure.angle, _of_latitude(measure, frame))


def _of_latitude(measure: Spread, frame: int) -> np.ndarray:
    """Density times the area |S^(d-2)| sin^(d-2) of the ring at each latitude."""
    d = measure.d
    area = 2 * np.exp((d - 1) / 2 * np.log(np.pi) - gammaln((d - 1) / 2))
    return measure.density[frame] * area * np.sin(measure.angle) ** (d - 2)

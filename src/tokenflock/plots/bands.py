"""An observable of an ensemble against time, one curve for each value of a swept parameter."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize

from tokenflock.plots._sweep import Sweep, sweep, symbol
from tokenflock.plots._time_axis import geometric, series, time_axis
from tokenflock.plots.phases import titled
from tokenflock.plots.styles import Theme, canvas, colour_bar, look, note_missing

_FEW = 6  # up to so many curves each has its own name


def curves(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    observable: str | None = None,
    log_time: bool | None = None,
    title: bool = True,
) -> Axes:
    """An observable of an ensemble against time for each value of the swept parameter, which gives
    the colour.

    Bands are the mean over repeats with two standard errors either way.

    Args:
      result: an ensemble over one parameter, as from `phase_diagram` or `ensemble`.
      ax: where to draw; a new figure unless given.
      observable: the variable to show; the first unless given.
      log_time: logarithmic time; unless given, where frames span over three decades in about equal
        ratios.
      title: say what ran.
    """
    swept = sweep(result, observable)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        note_missing(ax, swept.observable, swept.mean)
        mapped = colours(swept, theme)
        # many curves are drawn fainter
        presence = float(np.clip((_FEW / len(swept.values)) ** 0.5, 0.4, 1))
        for row, value in enumerate(swept.values):
            _curve(
                ax,
                swept,
                row,
                tuple(mapped.to_rgba(value)),
                f"{symbol(swept.parameter)} = {value:.4g}",
                presence,
            )
        if few(swept):
            ax.legend(
                loc="upper left",
                bbox_to_anchor=(1.01, 1.02),
                borderaxespad=0,
                handlelength=1.4,
                reverse=True,
            )
        else:
            colour_bar(ax, mapped, swept.parameter_label)
        ax.set_ylabel(swept.long_name)
        time_axis(ax, swept, geometric(swept.times) if log_time is None else log_time)
        if title:
            titled(ax, swept)
    return ax


def few(swept: Sweep) -> bool:
    """Whether curves are so few that each is named."""
    return len(swept.values) <= _FEW


def colours(swept: Sweep, theme: Theme) -> ScalarMappable:
    """The colour of each value of the swept parameter."""
    return ScalarMappable(_norm(swept.values), _shades(theme))


def band(
    ax: Axes, values: xr.DataArray, along: str, colour: str, label: str = "_", line: str = "-"
) -> None:
    """The mean of values over all axes but one as a line, their range as a band.

    Few places are marked.
    """
    rest = [dim for dim in values.dims if dim != along]
    at, mark = values[along].values, "o" if values.sizes[along] <= 10 else ""
    ax.plot(at, values.mean(rest), line, marker=mark, markersize=3, color=colour, label=label)
    ax.fill_between(at, values.min(rest), values.max(rest), color=colour, alpha=0.22, lw=0)


def _curve(
    ax: Axes, swept: Sweep, row: int, colour: tuple[float, ...], label: str, presence: float
) -> None:
    mean = swept.mean[row]
    ax.plot(
        swept.times,
        mean,
        color=colour,
        lw=0.5 + 0.7 * presence,
        label=label,
        marker="o" if swept.frames == 1 else None,
    )
    if swept.error is not None:
        spread = 2 * swept.error[row]
        ax.fill_between(
            swept.times, mean - spread, mean + spread, color=colour, alpha=0.25 * presence, lw=0
        )


def _norm(values: np.ndarray) -> Normalize:
    scale = LogNorm if series(values) else Normalize
    return scale(values[0], values[-1] if values[-1] > values[0] else values[0] + 1)


def _shades(theme: Theme) -> Colormap:
    """The colours of heat maps without the palest ones, which would be lost on the paper."""
    return LinearSegmentedColormap.from_list(
        "tokenflock-curves", theme.sequential(np.linspace(0.36, 0.97, 64))
    )

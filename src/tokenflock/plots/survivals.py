"""How long until: the share of systems in which an event has not happened yet, against time."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.ticker import NullFormatter

from tokenflock.errors import require
from tokenflock.plots._sweep import Sweep, sweep, symbol
from tokenflock.plots._time_axis import geometric, time_axis
from tokenflock.plots.bands import colours, few
from tokenflock.plots.phases import titled
from tokenflock.plots.styles import canvas, colour_bar, look, note_missing


def survival(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    log: bool = False,
    log_time: bool | None = None,
    title: bool = True,
) -> Axes:
    """The survival curves of an ensemble with an event, one for each value of the swept parameter,
    with two standard errors either way (Kaplan-Meier, Greenwood).

    Args:
      result: of `ensemble(..., until=...)`, over one parameter or none.
      ax: where to draw; a new figure unless given.
      log: a logarithmic axis of shares, on which rates that are constant in time are straight.
      log_time: logarithmic time; unless given, where frames span over three decades in about equal
        ratios.
      title: say what ran.
    """
    require(
        "survival" in result,
        "result",
        "an ensemble with an event",
        sorted(map(str, result.data_vars)),
        "write e.g. ensemble(..., until=Consensus())",
    )
    alone = result["survival"].dims == ("time",)
    whole = result.expand_dims("all").assign_coords(all=[0.0]) if alone else result
    swept = sweep(whole, "survival")
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        note_missing(ax, swept.observable, swept.mean)
        mapped = colours(swept, theme)
        for row, value in enumerate(swept.values):
            colour = theme.palette[0] if alone else tuple(mapped.to_rgba(value))
            label = "_" if alone else f"{symbol(swept.parameter)} = {value:.4g}"
            _curve(ax, swept, row, colour, label)
        ax.axhline(0.5, color=theme.ink, lw=0.5, alpha=0.35, zorder=0)  # the median
        if not alone:
            _legend(ax, swept, mapped)
        _shares(ax, swept, log)
        ax.set_ylabel("share of systems not there yet")
        time_axis(ax, swept, geometric(swept.times) if log_time is None else log_time)
        if title:
            titled(ax, swept)
    return ax


def _curve(ax: Axes, swept: Sweep, row: int, colour: object, label: str) -> None:
    share, error = swept.mean[row], swept.error
    ax.plot(swept.times, share, color=colour, lw=1.2, label=label)
    if error is not None:
        low, high = share - 2 * error[row], share + 2 * error[row]
        ax.fill_between(
            swept.times, low.clip(0, 1), high.clip(0, 1), color=colour, alpha=0.22, lw=0
        )


def _legend(ax: Axes, swept: Sweep, mapped: ScalarMappable) -> None:
    if few(swept):
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0, handlelength=1.4)
    else:
        colour_bar(ax, mapped, swept.parameter_label)


def _shares(ax: Axes, swept: Sweep, log: bool) -> None:
    """The axis of shares, down to the least share that is left."""
    if not log:
        ax.set_ylim(-0.02, 1.02)
        return
    left = swept.mean[swept.mean > 0]
    ax.set_yscale("log")
    ax.set_ylim(0.6 * float(left.min()) if left.size else 0.1, 1.2)
    ax.yaxis.set_minor_formatter(NullFormatter())

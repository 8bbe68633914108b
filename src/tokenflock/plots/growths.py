"""How fast small changes grow: eigenvalues of a state at rest, Lyapunov exponents of a run."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tokenflock.errors import require
from tokenflock.plots._story import plain_title
from tokenflock.plots._titles import law_title
from tokenflock.plots.styles import canvas, look, note_missing
from tokenflock.verbs.measure import dynamics_of

_LEGEND = 8  # exponents up to which each is named
_STILL = 1e-9  # frequency below which a mode does not turn


def spectrum(result: xr.Dataset, *, ax: Axes | None = None, title: bool = True) -> Axes:
    """The rates of all modes of a state at rest, the fastest first: above the line at zero small
    changes grow, below it they die out. Modes that turn while they do are open.

    Args:
      result: of `spectrum`.
      ax: where to draw; a new figure unless given.
      title: say what is at rest.
    """
    held = {"rate", "frequency"} <= set(map(str, result.data_vars))
    held = held and result["rate"].dims == ("mode",) == result["frequency"].dims
    require(held, "result", "a result of `spectrum`", sorted(map(str, result.data_vars)))
    rates, turns = result["rate"].values, np.abs(result["frequency"].values) > _STILL
    modes, finite = np.arange(1, len(rates) + 1), np.isfinite(rates)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.0).add_subplot()
        note_missing(ax, "rate", rates)
        ax.axhline(0, color=theme.soft, lw=0.8, zorder=1)
        for shown, face, label in ((~turns, None, "_"), (turns, "none", "turning")):
            at = shown & finite
            if at.any():
                colour = theme.palette[0]
                ax.plot(modes[at], rates[at], "o", ms=4, mfc=face, color=colour, label=label)
        if (turns & finite).any():
            ax.legend()
        ax.set(xlabel="mode", ylabel="growth rate", xlim=(0.5, len(rates) + 0.5))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if title:
            ax.set_title(_titled(result))
    return ax


def exponents(result: xr.Dataset, *, ax: Axes | None = None, title: bool = True) -> Axes:
    """Lyapunov exponents against the time over which they are averaged: what they come to at the
    end is the result. Above the line at zero nearby runs part, below it they meet.

    Args:
      result: of `lyapunov`.
      ax: where to draw; a new figure unless given.
      title: say what ran.
    """
    held = "estimate" in result and result["estimate"].dims == ("time", "mode")
    require(held, "result", "a result of `lyapunov`", sorted(map(str, result.data_vars)))
    times, lines = result["time"].values, result["estimate"].values.T
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.0).add_subplot()
        note_missing(ax, "estimate", lines)
        ax.axhline(0, color=theme.soft, lw=0.8, zorder=1)
        shades = theme.sequential(np.linspace(0.95, 0.35, len(lines)))
        mark = "o" if len(times) == 1 else None
        for number, (line, shade) in enumerate(zip(lines, shades)):
            label = f"{line[-1]:+.3g}".replace("-", "−") if number < _LEGEND else "_"
            ax.plot(times, line, color=shade, marker=mark, label=label)
        ax.set(xlabel="time of averaging", ylabel="Lyapunov exponents", xlim=(0, None))
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)
        if title:
            ax.set_title(_titled(result))
    return ax


def _titled(result: xr.Dataset) -> str:
    law = dynamics_of(result)
    return plain_title(result, "") if law is None else law_title(law)

"""A density over time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from tokenflock.errors import UserError, require
from tokenflock.plots._spread import ANGLES, LABEL, NAMES, Spread, colour_norm, spread
from tokenflock.plots._time_axis import edges, time_axis
from tokenflock.plots.styles import Theme, canvas, colour_bar, look


def density_over_time(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    log: bool | None = None,
    log_time: bool = False,
    title: bool = True,
) -> Axes:
    """A density over time and angle: a heat map with a colour bar.

    On the circle the other axis is the angle, on S^(d-1) the angle to the axis of symmetry.

    Args:
      result: a result of `meanfield.evolve`.
      ax: where to draw; a new figure unless given.
      log: logarithmic colours, over two decades below the largest density; unless given, where the
        peak is steep.
      log_time: logarithmic time.
      title: say what ran.
    """
    run = timed(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        mesh = draw_map(ax, run, theme, log=log, log_time=log_time)
        density_bar(ax, mesh)
        time_axis(ax, run, log_time)
        if title:
            ax.set_title(run.heading)
    return ax


def timed(result: xr.Dataset) -> Spread:
    """A density over one angle and time."""
    run = spread(result)
    if not run.timed or run.density.ndim != 2:
        raise UserError(
            "a density over time is needed, as from meanfield.evolve; for one without time use"
            " density_surface"
        )
    require(run.frames > 1, "result", "a run of two frames or more", f"{run.frames}")
    return run


def draw_map(
    ax: Axes, run: Spread, theme: Theme, *, log: bool | None = None, log_time: bool = False
) -> QuadMesh:
    """The heat map itself."""
    norm = colour_norm(run, log)
    angle, density = _closed(run)
    shown = np.maximum(density.T, norm.vmin or 0.0)
    mesh = ax.pcolormesh(edges(run.times, log_time), angle, shown, norm=norm, cmap=theme.sequential)
    mesh.set_rasterized(True)
    top = 2 if run.kind == "theta" else 1
    ticks = {share: text for share, text in ANGLES.items() if share <= top}
    ax.set(ylim=(0, top * np.pi), ylabel=NAMES[run.kind])
    ax.set_yticks(np.pi * np.array(list(ticks)), list(ticks.values()))
    return mesh


def density_bar(ax: Axes, mesh: QuadMesh) -> None:
    """The colour bar, with plain numbers."""
    colour_bar(ax, mesh, LABEL).ax.yaxis.set_major_formatter("{x:g}")


def _closed(run: Spread) -> tuple[np.ndarray, np.ndarray]:
    """(borders of cells that are centred on nodes, density).

    On the circle the first node is shown at both ends.
    """
    if run.kind == "theta":
        return edges(np.append(run.angle, 2 * np.pi)), np.hstack([run.density, run.density[:, :1]])
    middle = (run.angle[1:] + run.angle[:-1]) / 2
    return np.concatenate([[0.0], middle, [np.pi]]), run.density

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

    Args: result: a result of `meanfield.evolve`. ax: where to draw; a new figure unless given. log:
      logarithmic colours, over two decades below the largest density; unless given, where the peak
      is steep. log_time: logarithmic time. title: say what ran.
    """
    tale = timed(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.2).add_subplot()
        mesh = draw_map(ax, tale, theme, log=log, log_time=log_time)
        density_bar(ax, mesh)
        time_axis(ax, tale, log_time)
        if title:
            ax.set_title(tale.heading)
    return ax


def timed(result: xr.Dataset) -> Spread:
    """A density over one angle and time."""
    tale = spread(result)
    if not tale.timed or tale.density.ndim != 2:
        raise UserError(
            "a density over time is needed, as from meanfield.evolve; for one without time use"
            " density_surface"
        )
    require(tale.frames > 1, "result", "a run of two frames or more", f"{tale.frames}")
    return tale


def draw_map(
    ax: Axes, tale: Spread, theme: Theme, *, log: bool | None = None, log_time: bool = False
) -> QuadMesh:
    """The heat map itself."""
    norm = colour_norm(tale, log)
    angle, density = _closed(tale)
    shown = np.maximum(density.T, norm.vmin)
    mesh = ax.pcolormesh(
        edges(tale.times, log_time), angle, shown, norm=norm, cmap=theme.sequential
    )
    mesh.set_rasterized(True)
    top = 2 if tale.kind == "theta" else 1
    ticks = {share: text for share, text in ANGLES.items() if share <= top}
    ax.set(ylim=(0, top * np.pi), ylabel=NAMES[tale.kind])
    ax.set_yticks(np.pi * np.array(list(ticks)), list(ticks.values()))
    return mesh


def density_bar(ax: Axes, mesh: QuadMesh) -> None:
    """The colour bar, with plain numbers."""
    colour_bar(ax, mesh, LABEL).ax.yaxis.set_major_formatter("{x:g}")


def _closed(tale: Spread) -> tuple[np.ndarray, np.ndarray]:
    """(borders of cells that are centred on nodes, density).

    On the circle the first node is shown at both ends.
    """
    if tale.kind == "theta":
        return edges(np.append(tale.angle, 2 * np.pi)), np.hstack(
            [tale.density, tale.density[:, :1]]
        )
    middle = (tale.angle[1:] + tale.angle[:-1]) / 2
    return np.concatenate([[0.0], middle, [np.pi]]), tale.density

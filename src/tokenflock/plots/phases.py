"""Phase diagrams: an observable over time and a swept parameter, as a heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from tokenflock.errors import require
from tokenflock.plots._story import literal, time_label
from tokenflock.plots._sweep import Sweep, sweep
from tokenflock.plots._time_axis import edges, geometric, series, time_axis
from tokenflock.plots.styles import Theme, canvas, colour_bar, look, note_missing

_FEW = 8  # up to so many values are all written on their axis
_LONG = 64  # characters past which a title takes two lines
_LETTER = 0.065  # inches that a letter of a heading takes
_SCALES = {"pair_density": (0.0, 1.0)}  # observables with one scale on every figure


def phase_diagram(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    observable: str | None = None,
    curve: bool = True,
    log_time: bool | None = None,
    title: bool = True,
) -> Axes:
    """An observable of an ensemble over time and a swept parameter, with the transition that theory
    predicts in the limit d to infinity.

    The pair density is always shown from 0 to 1, other observables over their own range. Cells are
    centred on the values of the parameter, whose axis is logarithmic where they are a geometric
    series.

    Args:
      result: an ensemble over one parameter, as from `phase_diagram` or `ensemble`.
      ax: where to draw; a new figure unless given.
      observable: the variable to show; the first unless given.
      curve: draw the variable `transition` where there is one.
      log_time: logarithmic time; unless given, where frames span over three decades in about equal
        ratios.
      title: say what ran.
    """
    swept = sweep(result, observable)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.6, 3.3).add_subplot()
        mesh = _map(ax, swept, theme, _scale([swept]), log_time)
        _outline(colour_bar(ax, mesh, swept.long_name), theme)
        ax.set_ylabel(swept.parameter_label)
        if curve and (line := _front(ax, swept, theme)):
            _key(ax, line, theme)
        if title:
            titled(ax, swept)
    return ax


def phase_grid(
    results: Sequence[xr.Dataset],
    *,
    columns: int = 3,
    observable: str | None = None,
    curve: bool = True,
    log_time: bool | None = None,
) -> Figure:
    """Phase diagrams side by side on one scale of colour. Each is titled by its d and by what else
    tells it from the others.

    Args:
      results: ensembles over the same parameter, as from `phase_diagram` or `ensemble`.
      columns: how many panels are in a row at most.
      observable: the variable to show; the first unless given.
      curve: draw the variable `transition` where there is one.
      log_time: logarithmic time; unless given, where frames span over three decades in about equal
        ratios.
    """
    require(len(results) > 0, "results", "at least one ensemble", "none")
    require(columns >= 1, "columns", "1 or more", columns)
    sweeps = [sweep(result, observable) for result in results]
    kinds = sorted({f"{swept.observable} over {swept.parameter}" for swept in sweeps})
    require(
        len(kinds) == 1,
        "results",
        "of one observable over one parameter",
        kinds,
        "draw each with phase_diagram",
    )
    with look() as theme:
        figure, axes, (rows, across) = _panels(len(sweeps), columns)
        scale = _scale(sweeps)
        meshes = [_map(ax, swept, theme, scale, log_time) for ax, swept in zip(axes, sweeps)]
        lines = [_front(ax, swept, theme) if curve else None for ax, swept in zip(axes, sweeps)]
        slim = {"fraction": 0.1 / across, "aspect": 14 * rows, "pad": 0.04 / across}
        _outline(figure.colorbar(meshes[0], ax=axes, label=sweeps[0].long_name, **slim), theme)
        _label_borders(axes, sweeps, across)
        _tell_apart(figure, axes, sweeps)
        _shared_key(figure, [line for line in lines if line is not None])
    return figure


def titled(ax: Axes, swept: Sweep) -> None:
    """The title of a plot of one ensemble, which says the convention instead of the axis."""
    what, *rest = swept.facts.values() or [""]
    details = ", ".join(rest) + (f" ({swept.convention})" if swept.convention else "")
    between = "" if not rest else ",\n" if len(what + details) > _LONG else ", "
    ax.set_title((what + between + details).strip())
    if swept.label == time_label(swept.convention):
        ax.set_xlabel(time_label())


def _map(ax: Axes, swept: Sweep, theme: Theme, scale: Normalize, log_time: bool | None) -> QuadMesh:
    """The cells, and the axes around them."""
    log_time = geometric(swept.times) if log_time is None else log_time
    borders = _borders(swept.values)
    note_missing(ax, swept.observable, swept.mean)
    masked = np.ma.masked_invalid(swept.mean)
    mesh = ax.pcolormesh(
        edges(swept.times, log_time), borders, masked, norm=scale, cmap=theme.sequential
    )
    mesh.set_rasterized(True)  # thousands of cells as shapes would make a slow file with seams
    if series(swept.values):
        _series_axis(ax, swept.values)
    time_axis(ax, swept, log_time)
    ax.set_ylim(borders[0], borders[-1])
    ax.spines[:].set_visible(True)
    return mesh


def _series_axis(ax: Axes, values: np.ndarray) -> None:
    """A logarithmic axis with plain numbers: the values themselves where they are few."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(
        FixedLocator(values.tolist()) if len(values) <= _FEW else LogLocator(subs=(1, 2, 5))
    )
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _borders(values: np.ndarray) -> np.ndarray:
    """Borders of cells that are centred on values, the first and the last cell as well."""
    middle = np.log(values) if series(values) else values
    if len(middle) == 1:
        return middle[0] + np.array([-0.5, 0.5])
    between = (middle[1:] + middle[:-1]) / 2
    borders = np.concatenate(
        [[2 * middle[0] - between[0]], between, [2 * middle[-1] - between[-1]]]
    )
    return np.exp(borders) if series(values) else borders


def _scale(sweeps: Sequence[Sweep]) -> Normalize:
    """The range of colours that all of these share."""
    fixed = _SCALES.get(sweeps[0].observable)
    values = np.concatenate([swept.mean[np.isfinite(swept.mean)] for swept in sweeps])
    low, high = fixed or (values.min(initial=np.inf), values.max(initial=-np.inf))
    return Normalize(low, high if high > low else low + 1)


def _front(ax: Axes, swept: Sweep, theme: Theme) -> Line2D | None:
    """The predicted transition of the limit d to infinity, with a halo against any colour.

    None where it is nowhere in the picture.
    """
    if swept.front is None:
        return None
    (times, values), (low, high) = _curve(swept.times, swept.front), ax.get_ylim()
    inside = (values >= low) & (values <= high)
    if not inside.any():
        return None
    # one point more, so that the line ends at the border
    near = inside | np.roll(inside, 1) | np.roll(inside, -1)
    name = literal(swept.front.attrs.get("curve", "")).replace("n =", "$n$ =")
    # the curve is of orthogonal tokens: at finite d random ones may cluster at other times
    label = r"theory, $d\to\infty$" + (f": {name}" if name else "")
    halo = [Stroke(linewidth=3.4, foreground=theme.paper), Normal()]
    (line,) = ax.plot(
        times,
        np.where(near, values, np.nan),
        color=theme.palette[2],
        lw=1.5,
        label=label,
        path_effects=halo,
    )
    return line


def _curve(times: np.ndarray, front: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """(times, values) of the predicted transition, from where it begins at zero: it is steep there,
    between two frames.
    """
    values, onset = front.values, front.attrs.get("onset")
    if onset is None:
        return times, values
    later = np.isfinite(values) & (times > onset)
    if not later.any():
        return times, values
    k = int(np.argmax(later))
    return np.insert(times, k, onset), np.insert(values, k, 0.0)


def _key(ax: Axes, line: Line2D, theme: Theme) -> None:
    """The name of the curve, at early times and large beta, where nothing has clustered.

    Elsewhere if the curve is there.
    """
    x, y = ax.transAxes.inverted().transform(ax.transData.transform(line.get_xydata())).T
    where = "lower right" if np.any((x > 0) & (x < 0.5) & (y > 0.86) & (y < 1)) else "upper left"
    key = ax.legend(
        handles=[line], loc=where, handlelength=1.6, borderaxespad=0.7, frameon=True, fancybox=False
    )
    key.get_frame().set(facecolor=theme.paper, edgecolor="none", alpha=0.92)


def _outline(bar: Colorbar, theme: Theme) -> None:
    """A frame like that of the map, whose least colour is that of the paper."""
    bar.outline.set(visible=True, edgecolor=theme.soft, linewidth=0.6)


def _panels(count: int, columns: int) -> tuple[Figure, list[Axes], tuple[int, int]]:
    """Axes in rows that are about equally full, and how many rows and columns there are."""
    rows = -(-count // columns)
    columns = -(-count // rows)
    figure = canvas(1.0 + 2.0 * columns, 0.85 + 1.85 * rows)
    figure.set_layout_engine("constrained", wspace=0.04)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count], (rows, columns)


def _label_borders(axes: Sequence[Axes], sweeps: Sequence[Sweep], columns: int) -> None:
    """Labels of axes on the border of the grid only, and numbers too where all panels have the
    same.
    """
    same_x = len({ax.get_xlim() for ax in axes}) == 1
    same_y = len({ax.get_ylim() for ax in axes}) == 1
    for place, (ax, swept) in enumerate(zip(axes, sweeps)):
        left, below = place % columns == 0, place + columns >= len(axes)
        ax.set_xlabel(swept.label if below else "")
        ax.set_ylabel(swept.parameter_label if left else "")
        ax.tick_params(labelbottom=below or not same_x, labelleft=left or not same_y, which="both")


def _shared_key(figure: Figure, lines: Sequence[Line2D]) -> None:
    """One name for the curves of all panels, above them.

    Its details where they are the same for all.
    """
    names = sorted({str(line.get_label()) for line in lines})
    if names:
        name = names[0] if len(names) == 1 else names[0].partition(":")[0]
        beside = _LETTER * len(figure.get_suptitle() + name) < figure.get_size_inches()[0]
        where = "upper right" if beside else "outside lower right"
        figure.legend(
            handles=[lines[0]], labels=[name], loc=where, handlelength=1.6, borderaxespad=0.2
        )


def _tell_apart(figure: Figure, axes: Sequence[Axes], sweeps: Sequence[Sweep]) -> None:
    """What all panels share is said once, above them; d and what differs on each."""
    topics = list(dict.fromkeys(topic for swept in sweeps for topic in swept.facts))
    apart = [
        topic
        for topic in topics
        if topic == "d" or len({swept.facts.get(topic) for swept in sweeps}) > 1
    ]
    for ax, swept in zip(axes, sweeps):
        ax.set_title(", ".join(swept.facts[topic] for topic in apart if topic in swept.facts))
    same = ", ".join(sweeps[0].facts[topic] for topic in topics if topic not in apart)
    figure.suptitle(same, x=0.012, ha="left")

"""The one look of all figures, in print and on a dark screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from tokenflock.errors import UserError, require

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """The colours of one theme.

    The palette is safe for the colour-blind, and its neighbours differ in grey.
    """

    name: str
    paper: str
    ink: str
    soft: str  # labels and frames
    faint: str  # guides
    palette: tuple[str, ...]
    neutral: str  # what has no colour of its own
    ball: tuple[str, str]  # the sphere in shade and in light
    shades: tuple[str, ...]  # from nothing to much
    relief: tuple[str, ...]  # of a landscape, from low to high

    @property
    def sequential(self) -> Colormap:
        """From nothing (the paper) to much."""
        return LinearSegmentedColormap.from_list(f"tokenflock-{self.name}", self.shades)

    @property
    def terrain(self) -> Colormap:
        """Of a landscape: muted, so that tokens stand out on it."""
        return LinearSegmentedColormap.from_list(f"tokenflock-{self.name}-terrain", self.relief)


THEMES = {
    "light": Theme(
        name="light",
        paper="#ffffff",
        ink="#1b1f24",
        soft="#59616b",
        faint="#c9ced6",
        palette=("#0b559f", "#e0a11b", "#bb4a6b", "#2a9d8f", "#7b5ea7", "#6fb7e6", "#8c5a2b"),
        neutral="#8b929c",
        ball=("#b4bdca", "#fbfcfd"),
        shades=("#ffffff", "#cfe3ec", "#7fb3d0", "#2f74ad", "#12356b", "#0a1535"),
        relief=("#48617f", "#869cb3", "#c0cbd2", "#efe6cc", "#f5ca70"),
    ),
    "dark": Theme(
        name="dark",
        paper="#0f1319",
        ink="#edf0f4",
        soft="#9aa4b1",
        faint="#343c48",
        palette=("#5ba7f7", "#f4c04e", "#d94f78", "#45cfb4", "#b89df2", "#b5e1ff", "#d59b69"),
        neutral="#7d8794",
        ball=("#141a23", "#4a5668"),
        shades=("#0f1319", "#1d2f4d", "#2f5f95", "#4f9fcf", "#a8dcd9", "#fdf6d8"),
        relief=("#11161f", "#1f2c42", "#35506f", "#748487", "#dcb862"),
    ),
}

_shown: ContextVar[bool] = ContextVar("tokenflock_shown", default=True)
_active: ContextVar[ThemeName | None] = ContextVar("tokenflock_theme", default=None)


def rc(theme: ThemeName = "light") -> dict[str, Any]:
    """The matplotlib settings of a theme, without LaTeX and with fonts that every matplotlib brings
    along.
    """
    require(theme in THEMES, "theme", " or ".join(map(repr, THEMES)), repr(theme))
    look = THEMES[theme]
    return {
        "figure.facecolor": look.paper,
        "axes.facecolor": look.paper,
        "savefig.facecolor": "auto",
        "text.color": look.ink,
        "axes.labelcolor": look.ink,
        "axes.titlecolor": look.ink,
        "axes.edgecolor": look.soft,
        "xtick.color": look.soft,
        "ytick.color": look.soft,
        "xtick.labelcolor": look.ink,
        "ytick.labelcolor": look.ink,
        "grid.color": look.faint,
        "axes.prop_cycle": cycler(color=look.palette),
        "font.family": "STIXGeneral",
        "mathtext.fontset": "stix",
        "text.usetex": False,
        "axes.unicode_minus": True,
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.labelsize": 9.5,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "legend.fontsize": 8.5,
        "figure.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titlepad": 6,
        "axes.linewidth": 0.6,
        "lines.linewidth": 1.3,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.minor.width": 0.4,
        "ytick.minor.width": 0.4,
        "xtick.major.size": 3,
        "ytick.major.size": 3,
        "xtick.minor.size": 1.8,
        "ytick.minor.size": 1.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.dpi": 110,
        "savefig.dpi": 220,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
    }


@contextmanager
def style(theme: ThemeName = "light", *, shown: bool = True) -> Iterator[Theme]:
    """Draw in a theme: `with style("dark"): circle(run)`. The settings of matplotlib are as before
    when it ends.

    Figures that are not to be `shown` go to files only, also in a notebook.
    """
    _pyplot()  # before its settings are changed: it would lose what a notebook has set
    settings = rc(theme)
    token = _active.set(theme)
    before = _shown.set(shown and _shown.get())
    try:
        with matplotlib.rc_context(cast(Any, settings)):  # to a type checker, keys are literals
            yield THEMES[theme]
    finally:
        _active.reset(token)
        _shown.reset(before)


@contextmanager
def look(home: Axes | FigureBase | None = None) -> Iterator[Theme]:
    """The theme to draw in: that of the axes or figure given, else of the `style` around, else
    light.
    """
    with style(_active.get() or "light" if home is None else _shade(home)) as theme:
        yield theme


def canvas(width: float, height: float) -> Figure:
    """A figure of so many inches that needs no display and no pyplot.

    In a notebook, and where pyplot is in use, it is one of pyplot's: the cell, or `plt.show()`,
    shows it.
    """
    pyplot = _pyplot()
    if pyplot is not None:
        return pyplot.figure(figsize=(width, height), layout="constrained")
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _pyplot() -> ModuleType | None:
    """Pyplot, ready to draw, if its user or a notebook expects figures from it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = hasattr(shell, "kernel")
    if not _shown.get() or not ("matplotlib.pyplot" in sys.modules or in_notebook):
        return None
    from matplotlib import pyplot

    pyplot.draw_if_interactive()  # takes the notebook's settings
    return pyplot


def panels(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (3.2, 2.6), **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of panels of so many inches each, and their axes row by row.

    Options are those of `Figure.subplots`.
    """
    with look():
        figure = canvas(columns * size[0], rows * size[1])
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def figure_of(ax: Axes) -> Figure | SubFigure:
    """The figure, or part of one, that axes are on."""
    figure = ax.get_figure()
    if figure is None:
        raise UserError("these axes were removed from their figure; give axes that are on one")
    return figure


def root_of(home: Axes | FigureBase) -> Figure:
    """The whole figure that axes, or a part of a figure, belong to."""
    figure = home.get_figure(root=True)
    if figure is None:
        raise UserError("these axes were removed from their figure; give axes that are on one")
    return figure


def colour_bar(ax: Axes, mappable: ScalarMappable, label: str) -> Colorbar:
    """A colour bar as tall as the axes."""
    beside = ax.inset_axes((1.03, 0, 0.035, 1))
    bar = figure_of(ax).colorbar(mappable, cax=beside, label=label)
    bar.outline.set_visible(False)
    return bar


def plain_ticks(axis: Axis) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 of each decade, and nothing between."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))


def _shade(home: Axes | FigureBase) -> ThemeName:
    red, green, blue, alpha = to_rgba(home.get_facecolor())
    if alpha == 0:
        red, green, blue, _ = to_rgba(root_of(home).get_facecolor())
    return "dark" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.4 else "light"


def note_missing(ax: Axes, name: str, values: Any) -> None:
    """Write on a plot how much of its values is not finite, or raise where none is.

    Every plot of results that may have gaps calls it, so that none of them is empty without a word.
    """
    gaps = ~np.isfinite(np.asarray(values, float))
    remedy = "compute it first: cells of a sweep are NaN until they are done"
    require(not gaps.all(), name, "finite somewhere", "no finite value", remedy)
    if gaps.any():
        share = f"{max(100 * gaps.mean(), 1):.0f} % missing"
        spot = {"transform": ax.transAxes, "ha": "right", "va": "bottom", "fontsize": "small"}
        ax.text(0.99, 0.01, share, gid="missing", zorder=9, **spot)

"""The picture of a film: drawn once, then only what moves is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tokenflock.observables.cluster_count import ClusterCount
from tokenflock.plots._discs import Discs, colour_groups, discs
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots.circles import CircleView
from tokenflock.plots.planes import PlaneView
from tokenflock.plots.spheres import SphereView
from tokenflock.plots.styles import Theme
from tokenflock.plots.timelines import draw_counts, draw_height

INCHES = 4.5  # the shorter side of a film, so that letters keep their share of the picture


class View(Protocol):
    """What a film shows of the tokens: the artists that move, and how they come to a frame."""

    note: str
    "what the title says of it"

    def __init__(
        self, ax: Axes, run: Story, theme: Theme, groups: np.ndarray, shot: Shot = ...
    ) -> None: ...

    @property
    def artists(self) -> Sequence[Artist]:
        """What is drawn again for each picture."""
        ...

    def show(self, frame: int, tokens: Discs, turn: float = 0.0) -> None:
        """Bring the artists to a frame, with the camera turned by so many degrees."""


# every view but 'auto', by the name that `film` takes
VIEWS: dict[str, type[View]] = {"circle": CircleView, "plane": PlaneView, "sphere": SphereView}


class Stage:
    """Tokens, a strip with energy and number of clusters, and a marker that moves along it."""

    def __init__(
        self, run: Story, theme: Theme, size: tuple[int, int], frames: np.ndarray, shot: Shot
    ) -> None:
        self.run, self.theme, self.size, self.frames = run, theme, size, frames
        self.spin = shot.spin
        self.figure, self.canvas = blank(size)
        tokens, above, below = layout(self.figure, wide=size[0] > 1.25 * size[1])
        groups = colour_groups(run, shot.clusters_at)
        self.view = VIEWS[shot.view](tokens, run, theme, groups, shot)
        shown = np.unique(frames)
        self.discs = dict(zip(shown.tolist(), discs(run, shown, groups)))
        draw_height(above, run, theme)
        draw_counts(below, run, theme, run.delta)
        time_axis(above, run, bool(shot.log_time), label=False)
        time_axis(below, run, bool(shot.log_time))
        above.tick_params(labelbottom=False)
        self._head(theme)
        self.panels = above, below
        self._markers(above, below, theme)
        self._backdrop()

    def _head(self, theme: Theme) -> None:
        straight = (
            "straight lines between layers" if self.run.of_model and self.run.decimals else ""
        )
        note = ", ".join(filter(None, [self.view.note, straight]))
        title = f"{self.run.heading}, $n$ = {self.run.n}, $d$ = {self.run.d}" + (
            f"\n{note}" if note else ""
        )
        self.figure.text(0.025, 0.965, title, ha="left", va="top", fontsize=11, linespacing=1.35)
        self.clock = self.figure.text(
            0.025, 0.035, "", ha="left", va="bottom", fontsize=11, color=theme.ink
        )

    def _markers(self, above: Axes, below: Axes, theme: Theme) -> None:
        """A line through both panels and a dot on each curve."""
        self.curves = (
            self.run.height().values,
            self.run.measured(ClusterCount(self.run.delta)).values,
        )
        dot: dict[str, Any] = {"ms": 5, "mew": 0.7, "zorder": 4, "clip_on": False}
        self.cursors = [
            ax.axvline(self.run.times[0], color=theme.palette[1], lw=1.1, zorder=3)
            for ax in (above, below)
        ]
        self.dots = [
            ax.plot([], [], "o", color=theme.palette[1], mec=theme.paper, **dot)[0]
            for ax in (above, below)
        ]
        self.moving = [*self.view.artists, *self.cursors, *self.dots, self.clock]

    def _backdrop(self) -> None:
        for artist in self.moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.empty = self.canvas.copy_from_bbox(self.figure.bbox)

    def picture(self, number: int) -> np.ndarray:
        """One picture, (height, width, 4) bytes."""
        frame = int(self.frames[number])
        time = float(self.run.times[frame])
        self.canvas.restore_region(self.empty)
        self.view.show(frame, self.discs[frame], self.spin * number / max(1, len(self.frames) - 1))
        for ax, cursor, dot, curve in zip(self.panels, self.cursors, self.dots, self.curves):
            # a logarithmic axis has no zero: it waits at the border
            place = max(time, ax.get_xlim()[0])
            cursor.set_xdata([place, place])
            dot.set_data([place], [curve[frame]])
        self.clock.set_text(self.run.moment(frame, decimals=self.run.decimals))
        for artist in self.moving:
            self.figure.draw_artist(artist)
        return np.array(self.canvas.buffer_rgba())


def blank(size: tuple[int, int]) -> tuple[Figure, FigureCanvasAgg]:
    """An empty picture of so many pixels, and what draws it."""
    dpi = min(size) / INCHES
    figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi)
    return figure, FigureCanvasAgg(figure)


def layout(figure: Figure, wide: bool) -> tuple[Axes, Axes, Axes]:
    """Axes of the tokens, the energy and the clusters: side by side, or stacked where the film is
    narrow.
    """
    if wide:
        width, height = figure.get_size_inches()
        side = 0.86 * height / width
        left = side + 0.115
        return (
            figure.add_axes((0.01, 0.055, side, 0.86)),
            figure.add_axes((left, 0.55, 0.97 - left, 0.34)),
            figure.add_axes((left, 0.14, 0.97 - left, 0.34)),
        )
    return (
        figure.add_axes((0.04, 0.4, 0.92, 0.52)),
        figure.add_axes((0.15, 0.27, 0.8, 0.12)),
        figure.add_axes((0.15, 0.13, 0.8, 0.12)),
    )

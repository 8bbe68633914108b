"""The scene of a film of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tokenflock.observables.cluster_count import ClusterCount
from tokenflock.plots._discs import Discs, colouring, discs
from tokenflock.plots._head import footnotes, headline, trail_note
from tokenflock.plots._scene import Scene
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, literal
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots._titles import unmarked
from tokenflock.plots.circles import CircleView
from tokenflock.plots.planes import PlaneView
from tokenflock.plots.spheres import SphereView
from tokenflock.plots.styles import Theme
from tokenflock.plots.timelines import draw_counts, draw_height


class View(Protocol):
    """What a film shows of the tokens: the artists that move, and how they come to a frame."""

    note: str
    "what must be said of it"
    trails: str
    "what a trail is, but for its length"

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


class Stage(Scene):
    """Tokens, a strip with energy and number of clusters, and a marker that moves along it.

    What is `measured` are the frames of a run, or the layers of a model, between which `run` may
    have pictures: the strip has nothing there.
    """

    def __init__(
        self,
        run: Story,
        measured: Story,
        theme: Theme,
        size: tuple[int, int],
        frames: np.ndarray,
        shot: Shot,
    ) -> None:
        super().__init__(theme, size, frames, shot.spin)
        self.run, self.measured = run, measured
        tokens, above, below = layout(self.figure, self.wide)
        colour = colouring(run, shot.clusters_at)
        self.view = VIEWS[shot.view](tokens, run, theme, colour.group, shot)
        shown = np.unique(frames)
        self.discs = dict(zip(shown.tolist(), discs(run, shown, colour.group)))
        draw_height(above, measured, theme)
        draw_counts(below, measured, theme, measured.delta)
        time_axis(above, measured, bool(shot.log_time), label=False)
        time_axis(below, measured, bool(shot.log_time))
        above.tick_params(labelbottom=False)
        self.panels = above, below
        self._words(colour.meaning, shot)
        self._markers(above, below, theme)

    def _words(self, colours: str, shot: Shot) -> None:
        panel = self.panels[0].get_position().x0 if self.wide else None
        title = self.run.subject if shot.title is None else literal(shot.title)
        self.caption = unmarked(title)
        self.clock = headline(self.figure, self.canvas, title, panel)
        trails = trail_note(self.run, self.view.trails, shot.tail)
        glide = "between layers on straight lines" if self.run.frames > self.measured.frames else ""
        notes = [self.view.note, colours, ", ".join(filter(None, [trails, glide]))]
        footnotes(self.figure, self.canvas, self.theme, notes, panel)

    def _markers(self, above: Axes, below: Axes, theme: Theme) -> None:
        """A line through both panels and a dot on each curve."""
        self.curves = (
            self.measured.height().values,
            self.measured.measured(ClusterCount(self.measured.delta)).values,
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
        self.settle([*self.view.artists, *self.cursors, *self.dots, self.clock])

    def show(self, number: int) -> None:
        frame = int(self.frames[number])
        time = float(self.run.times[frame])
        # of a model the last layer that was passed; a run is measured at every frame
        passed = int(np.searchsorted(self.measured.times, time + 1e-9, side="right")) - 1
        self.view.show(frame, self.discs[frame], self.turn(number))
        for ax, cursor, dot, curve in zip(self.panels, self.cursors, self.dots, self.curves):
            # a logarithmic axis has no zero: it waits at the border
            low = ax.get_xlim()[0]
            cursor.set_xdata([max(time, low)] * 2)
            dot.set_data([max(float(self.measured.times[passed]), low)], [curve[passed]])
        self.clock.set_text(self._moment(frame, passed))

    def _moment(self, frame: int, passed: int) -> str:
        """When it is; between layers of a model, which two."""
        if self.run.frames == self.measured.frames:
            return self.run.moment(frame, decimals=self.run.decimals)
        from_layer, last = self.measured.moment(passed), self.measured.frames - 1
        return (
            from_layer
            if passed == last
            else f"{from_layer} \N{RIGHTWARDS ARROW} {self.measured.times[passed + 1]:g}"
        )


def layout(figure: Figure, wide: bool) -> tuple[Axes, Axes, Axes]:
    """Axes of the tokens, the energy and the clusters: side by side, or stacked where the film is
    narrow.
    """
    if wide:
        width, height = figure.get_size_inches()
        side = 0.8 * height / width
        left = side + 0.135
        return (
            figure.add_axes((0.02, 0.11, side, 0.8)),
            figure.add_axes((left, 0.55, 0.97 - left, 0.34)),
            figure.add_axes((left, 0.14, 0.97 - left, 0.34)),
        )
    return (
        figure.add_axes((0.04, 0.42, 0.92, 0.47)),
        figure.add_axes((0.15, 0.3, 0.8, 0.1)),
        figure.add_axes((0.15, 0.18, 0.8, 0.1)),
    )

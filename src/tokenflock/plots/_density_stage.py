"""The scene of a film of a density."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tokenflock.plots._head import footnotes, headline
from tokenflock.plots._scene import Scene
from tokenflock.plots._shot import Shot
from tokenflock.plots._spread import Spread, colour_norm
from tokenflock.plots._stage import layout
from tokenflock.plots._story import literal
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots._titles import space_title, unmarked
from tokenflock.plots.density_maps import density_bar, draw_map
from tokenflock.plots.radials import RadialView
from tokenflock.plots.styles import Theme
from tokenflock.plots.surfaces import BallView

# what is drawn over time: the first that the result has
_CLIMBS = ("free_energy", "energy", "order_parameter")


class DensityStage(Scene):
    """A measure, what it climbs over time, its density over time, and a marker that moves along
    them.
    """

    def __init__(
        self,
        run: Spread,
        theme: Theme,
        size: tuple[int, int],
        frames: np.ndarray,
        shot: Shot,
    ) -> None:
        super().__init__(theme, size, frames, shot.spin)
        self.run = run
        measure, above, below = layout(self.figure, self.wide)
        for ax in (above, below):
            left, bottom, width, height = ax.get_position().bounds
            ax.set_position((left, bottom, 0.83 * width, height))  # room for the colour bar
        self.view = self._viewed(measure, shot)
        self._curves(above, below, bool(shot.log_time))
        self._words(above, shot.title)
        self._markers(above, below)

    def _viewed(self, ax: Axes, shot: Shot) -> RadialView | BallView:
        if self.run.kind == "theta":
            return RadialView(ax, self.run, self.theme)
        return BallView(
            ax,
            self.run,
            self.theme,
            norm=colour_norm(self.run),
            azimuth=30.0 if shot.azimuth is None else shot.azimuth,
            elevation=25.0 if shot.elevation is None else shot.elevation,
        )

    def _curves(self, above: Axes, below: Axes, log_time: bool) -> None:
        climb = self._climb()
        self.values = climb.values
        above.plot(self.run.times, self.values, color=self.theme.palette[0])
        above.set_ylabel(literal(climb.attrs.get("long_name", climb.name)))
        time_axis(above, self.run, log_time, label=False)
        above.tick_params(labelbottom=False)
        density_bar(below, draw_map(below, self.run, self.theme, log_time=log_time))
        time_axis(below, self.run, log_time)

    def _markers(self, above: Axes, below: Axes) -> None:
        """A line through both panels and a dot on the curve.

        Then all that stands still is drawn, once.
        """
        self.above, mark = above, self.theme.palette[1]
        self.cursors = [
            ax.axvline(self.run.times[0], color=mark, lw=1.1, zorder=3) for ax in (above, below)
        ]
        (self.dot,) = above.plot(
            [], [], "o", ms=5, color=mark, mec=self.theme.paper, mew=0.7, zorder=4, clip_on=False
        )
        self.settle([*self.view.artists, *self.cursors, self.dot, self.clock])

    def _climb(self) -> xr.DataArray:
        return self.run.result[next(name for name in _CLIMBS if name in self.run.result)]

    def _words(self, above: Axes, title: str | None) -> None:
        panel = above.get_position().x0 if self.wide else None
        place = space_title(self.run.d, free=False)
        shown = f"{self.run.heading} on {place}" if title is None else literal(title)
        self.caption = unmarked(shown)
        self.clock = headline(self.figure, self.canvas, shown, panel)
        footnotes(self.figure, self.canvas, self.theme, [self.view.remark], panel)

    def show(self, number: int) -> None:
        frame = int(self.frames[number])
        self.view.show(frame, self.turn(number))
        # a logarithmic axis has no zero
        place = max(float(self.run.times[frame]), self.above.get_xlim()[0])
        for cursor in self.cursors:
            cursor.set_xdata([place, place])
        self.dot.set_data([place], [self.values[frame]])
        self.clock.set_text(self.run.moment(frame, self.run.decimals))

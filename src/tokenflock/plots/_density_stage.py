"""The picture of a film of a density: drawn once, then only what moves is drawn again."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tokenflock.plots._shot import Shot
from tokenflock.plots._spread import Spread, colour_norm
from tokenflock.plots._stage import blank, layout
from tokenflock.plots._story import literal
from tokenflock.plots._time_axis import time_axis
from tokenflock.plots.density_maps import density_bar, draw_map
from tokenflock.plots.radials import RadialView
from tokenflock.plots.styles import Theme
from tokenflock.plots.surfaces import BallView

# what is drawn over time: the first that the result has
_CLIMBS = ("free_energy", "energy", "order_parameter")


class DensityStage:
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
        self.run, self.theme, self.size, self.frames = run, theme, size, frames
        self.spin = shot.spin
        self.figure, self.canvas = blank(size)
        measure, above, below = layout(self.figure, wide=size[0] > 1.25 * size[1])
        for ax in (above, below):
            left, bottom, width, height = ax.get_position().bounds
            ax.set_position((left, bottom, 0.83 * width, height))  # room for the colour bar
        self.view = self._viewed(measure, shot)
        self._curves(above, below, bool(shot.log_time))
        self._head(theme)
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
        self.moving = [*self.view.artists, *self.cursors, self.dot, self.clock]
        for artist in self.moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.empty = self.canvas.copy_from_bbox(self.figure.bbox)

    def _climb(self) -> xr.DataArray:
        return self.run.result[next(name for name in _CLIMBS if name in self.run.result)]

    def _head(self, theme: Theme) -> None:
        remark = self.view.remark
        title = f"{self.run.heading}, $d$ = {self.run.d}" + (f"\n{remark}" if remark else "")
        self.figure.text(0.025, 0.965, title, ha="left", va="top", fontsize=11, linespacing=1.35)
        self.clock = self.figure.text(
            0.025, 0.035, "", ha="left", va="bottom", fontsize=11, color=theme.ink
        )

    def picture(self, number: int) -> np.ndarray:
        """One picture, (height, width, 4) bytes."""
        frame = int(self.frames[number])
        self.canvas.restore_region(self.empty)
        self.view.show(frame, self.spin * number / max(1, len(self.frames) - 1))
        # a logarithmic axis has no zero
        place = max(float(self.run.times[frame]), self.above.get_xlim()[0])
        for cursor in self.cursors:
            cursor.set_xdata([place, place])
        self.dot.set_data([place], [self.values[frame]])
        self.clock.set_text(self.run.moment(frame, self.run.decimals))
        for artist in self.moving:
            self.figure.draw_artist(artist)
        return np.array(self.canvas.buffer_rgba())

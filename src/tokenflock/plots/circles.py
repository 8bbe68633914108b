"""Tokens on the circle."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import Circle, Polygon

from tokenflock.errors import UserError
from tokenflock.plots._discs import COINCIDE, Discs, areas, colour_groups, colours, discs
from tokenflock.plots._landscape import lowest, potential, steepness
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import Theme, canvas, look

_ANGLES = {"0": 0.0, r"$\pi/2$": 0.5, r"$\pi$": 1.0, r"$3\pi/2$": 1.5}
_INNERMOST = 0.6  # radius at which a tail ends


def circle(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: float | None = None,
    tail: int = 0,
    landscape: bool = False,
    delta: float = COINCIDE,
    clusters_at: float | None = None,
) -> Axes:
    """Tokens on the circle (d = 2) at one time.

    Tokens that coincide are one disc, whose area grows with its weight. Tails lead inwards into the
    past. With `landscape`, the potential of the tokens is drawn around the circle: they climb it.

    Args:
      result: a run, or a model, with d = 2.
      ax: where to draw; a new figure unless given.
      at: the time (or layer); the last unless given. The nearest frame is shown.
      tail: how many earlier frames to draw.
      landscape: draw the potential.
      delta: tokens whose cosine is at least 1 - delta are one disc.
      clusters_at: the time whose clusters give the colours; unless given see `trajectories`.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(3.4, 3.6).add_subplot()
        frame = run.frame(at)
        groups = colour_groups(run, clusters_at)
        view = CircleView(ax, run, theme, groups, Shot("circle", landscape, tail))
        view.show(frame, discs(run, np.array([frame]), groups, delta)[0])
        ax.set_title(f"{run.heading}\n{run.moment(frame)}")
    return ax


class CircleView:
    """The artists of a circle, brought to any frame by `show`."""

    note, trails = "", "trails, inwards: the last"

    def __init__(
        self, ax: Axes, run: Story, theme: Theme, groups: np.ndarray, shot: Shot = Shot()
    ) -> None:
        if run.d != 2:
            raise UserError(f"circle needs d = 2, got d = {run.d}; use sphere")
        self.ax, self.run, self.theme, self.tail = ax, run, theme, shot.tail
        self.beta = steepness(run) if shot.landscape else None
        self.floor = 0.0 if self.beta is None else min(lowest(run, self.beta, np.eye(2)), 0.95)
        self.rgba = colours(theme, groups)
        self._furnish()
        self.hill = Polygon(
            np.zeros((2, 2)),
            fc=theme.palette[1],
            ec="none",
            alpha=0.35,
            zorder=1,
            visible=shot.landscape,
        )
        self.tails = LineCollection([], linewidths=0.9, zorder=2, capstyle="butt")
        self.discs: PathCollection = ax.scatter(
            [], [], zorder=3, edgecolors=theme.paper, linewidths=0.6, clip_on=False
        )
        ax.add_patch(self.hill)
        ax.add_collection(self.tails, autolim=False)
        self.artists = (self.hill, self.tails, self.discs)

    def _furnish(self) -> None:
        """The circle itself and its four angles."""
        ax, reach = self.ax, 1.3 if self.beta is None else 1.62
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        ax.axis("off")
        ax.add_patch(Circle((0, 0), 1, fill=False, ec=self.theme.soft, lw=0.7, zorder=1.5))
        for text, share in _ANGLES.items():
            out = np.array([np.cos(share * np.pi), np.sin(share * np.pi)])
            radius = 1.2 if self.beta is None else 0.84
            across, up = radius * out
            ax.text(
                across,
                up,
                text,
                ha="center",
                va="center",
                color=self.theme.soft,
                fontsize="small",
            )
            ax.plot(*np.outer(out, [0.985, 1.015]), color=self.theme.soft, lw=0.7, zorder=1.5)

    def show(self, frame: int, tokens: Discs, turn: float = 0.0) -> None:
        """Bring the picture to a frame. A circle has no camera to turn."""
        order = np.argsort(-tokens.w, kind="stable")
        self.discs.set_offsets(tokens.x[order])
        self.discs.set_sizes(areas(self.ax, tokens.w[order], self.run.n))
        self.discs.set(facecolor=colours(self.theme, tokens.group[order]))
        if self.tail:
            self._show_tails(frame)
        if self.beta is not None:
            self._show_landscape(frame, self.beta)

    def _show_tails(self, frame: int) -> None:
        past = self.run.x[max(0, frame - self.tail) : frame + 1]  # oldest first
        age = np.arange(len(past) - 1, -1, -1) / self.tail
        points = past * (1 - (1 - _INNERMOST) * age)[:, None, None]
        segments = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 2)
        rgba = np.tile(self.rgba, (len(past) - 1, 1))
        rgba[:, 3] = np.repeat(0.75 * (1 - age[:-1]), self.run.n)
        self.tails.set(segments=segments, color=rgba)

    def _show_landscape(self, frame: int, beta: float) -> None:
        angle = np.linspace(0, 2 * np.pi, 361)
        q = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        height = potential(q, self.run.x[frame], self.run.w, beta)
        share = np.maximum(height - self.floor, 0) / (1 - self.floor)
        outer = q * (1.05 + 0.5 * share)[:, None]
        self.hill.set_xy(np.concatenate([outer, 1.05 * q[::-1]]))

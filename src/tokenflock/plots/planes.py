"""Tokens in the plane of their first principal axes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection

from tokenflock.errors import UserError
from tokenflock.plots._discs import COINCIDE, Discs, areas, colour_groups, colours, discs
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import Theme, canvas, look

LEGIBLE = 96  # tokens, up to which they are written as words


def plane(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: float | None = None,
    tail: int = 0,
    clusters_at: float | None = None,
) -> Axes:
    """Directions of tokens at one time, in the plane of the first two principal axes of all frames
    about their mean.

    Up to 96 tokens of a model are written as words; else tokens that coincide are one disc. The
    title says what share of the spread the plane holds.

    Args:
      result: a run, or a model, with d >= 2.
      ax: where to draw; a new figure unless given.
      at: the time (or layer); the last unless given. The nearest frame is shown.
      tail: how many earlier frames to draw.
      clusters_at: the time whose clusters give the colours; unless given see `trajectories`.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(3.6, 3.8).add_subplot()
        frame = run.frame(at)
        groups = colour_groups(run, clusters_at)
        view = PlaneView(ax, run, theme, groups, Shot("plane", tail=tail))
        view.show(frame, discs(run, np.array([frame]), groups, COINCIDE)[0])
        ax.set_title(f"{run.heading}\n{run.moment(frame)}, {view.note}")
    return ax


class PlaneView:
    """The artists of a plane, brought to any frame by `show`."""

    def __init__(
        self, ax: Axes, run: Story, theme: Theme, groups: np.ndarray, shot: Shot = Shot()
    ) -> None:
        if run.d < 2:
            raise UserError(f"plane needs d >= 2, got d = {run.d}; use timeline")
        self.ax, self.run, self.theme, self.tail = ax, run, theme, shot.tail
        self.rgba = colours(theme, groups)
        self.mean, self.axes, self.note = _axes(run)
        self.seen = self._project(run.x)  # (frames, n, 2)
        self._furnish()
        self.tails = LineCollection([], linewidths=0.8, zorder=2, capstyle="butt")
        self.discs: PathCollection = ax.scatter(
            [], [], zorder=3, edgecolors=theme.paper, linewidths=0.6
        )
        ax.add_collection(self.tails, autolim=False)
        words = run.words if run.words is not None and run.n <= LEGIBLE else []
        style = {"ha": "center", "va": "center", "zorder": 4, "fontsize": "large", "clip_on": True}
        self.words = [
            ax.text(0, 0, _plain(word), color=colour, fontweight="bold", **style)
            for word, colour in zip(words, self.rgba)
        ]
        self.artists = (self.tails, self.discs, *self.words)

    def _project(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) @ self.axes.T

    def _furnish(self) -> None:
        low, high = self.seen.min(axis=(0, 1)), self.seen.max(axis=(0, 1))
        middle, half = (
            (low + high) / 2,
            0.56 * max(np.ptp(np.stack([low, high]), axis=0).max(), 1e-9),
        )
        self.ax.set(
            xlim=middle[0] + half * np.array([-1, 1]),
            ylim=middle[1] + half * np.array([-1, 1]),
            aspect="equal",
        )
        self.ax.axis("off")

    def show(self, frame: int, tokens: Discs, turn: float = 0.0) -> None:
        """Bring the picture to a frame. A plane has no camera to turn."""
        if self.words:
            for word, place in zip(self.words, self.seen[frame]):
                word.set_position(place)
        else:
            order = np.argsort(-tokens.w, kind="stable")
            self.discs.set_offsets(self._project(tokens.x[order]))
            self.discs.set_sizes(areas(self.ax, tokens.w[order], self.run.n))
            self.discs.set(facecolor=colours(self.theme, tokens.group[order]))
        if self.tail:
            self._show_tails(frame)

    def _show_tails(self, frame: int) -> None:
        past = self.seen[max(0, frame - self.tail) : frame + 1]  # oldest first
        age = np.arange(len(past) - 1, -1, -1) / self.tail
        segments = np.stack([past[:-1], past[1:]], axis=2).reshape(-1, 2, 2)
        rgba = np.tile(self.rgba, (len(past) - 1, 1))
        rgba[:, 3] = np.repeat(0.4 * (1 - age[:-1]), self.run.n)
        self.tails.set(segments=segments, color=rgba)


def _axes(run: Story) -> tuple[np.ndarray, np.ndarray, str]:
    """The mean of all frames, the two axes of greatest spread about it, and a note on the share
    that they hold.
    """
    mean = np.einsum("fnd,n->d", run.x, run.w) / (run.frames * run.w.sum())
    centred = run.x - mean
    moment = np.einsum("fni,fnj,n->ij", centred, centred, run.w, optimize=True)
    values, vectors = np.linalg.eigh(moment)
    share = 100 * values[-2:].sum() / max(values.sum(), np.finfo(float).tiny)
    return mean, vectors[:, :-3:-1].T, f"first 2 of {run.d} principal axes ({share:.0f} %)"


def _plain(word: str) -> str:
    """A word as it can be seen: blanks have signs, and dollars are no formulas."""
    return word.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥").replace("$", r"\$")

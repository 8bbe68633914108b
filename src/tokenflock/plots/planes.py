"""Tokens in the plane of their first principal axes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection

from tokenflock.errors import UserError
from tokenflock.plots._discs import COINCIDE, Discs, areas, colour_groups, colours, discs
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import Theme, canvas, look, root_of

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

    Up to 96 tokens of a model are written as words, each beside the dot that is its place where
    they would overlap, and once, larger, where the same word comes again there; else tokens that
    coincide are one disc. Each axis says what share of the variance it holds.

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
        ax.set_title(f"{run.heading}\n{run.moment(frame)}")
    return ax


class PlaneView:
    """The artists of a plane, brought to any frame by `show`."""

    note, trails = "", "trails: the last"

    def __init__(
        self, ax: Axes, run: Story, theme: Theme, groups: np.ndarray, shot: Shot = Shot()
    ) -> None:
        if run.d < 2:
            raise UserError(f"plane needs d >= 2, got d = {run.d}; use timeline")
        self.ax, self.run, self.theme, self.tail = ax, run, theme, shot.tail
        self.rgba = colours(theme, groups)
        self.mean, self.axes, self.shares = _axes(run)
        self.seen = self._project(run.x)  # (frames, n, 2)
        self._furnish()
        self.tails = LineCollection([], linewidths=0.8, zorder=2, capstyle="butt")
        self.discs: PathCollection = ax.scatter(
            [], [], zorder=3, edgecolors=theme.paper, linewidths=0.6
        )
        ax.add_collection(self.tails, autolim=False)
        words = run.words if run.words is not None and run.n <= LEGIBLE else []
        self.leaders = LineCollection([], linewidths=0.5, colors=theme.soft, alpha=0.6, zorder=2.5)
        ax.add_collection(self.leaders, autolim=False)
        style = {"ha": "center", "va": "center", "zorder": 4, "clip_on": True}
        self.words = [
            ax.text(0, 0, _plain(word), color=colour, fontweight="bold", **style)
            for word, colour in zip(words, self.rgba)
        ]
        self.artists = (self.tails, self.leaders, self.discs, *self.words)

    def _project(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) @ self.axes.T

    def _furnish(self) -> None:
        low, high = self.seen.min(axis=(0, 1)), self.seen.max(axis=(0, 1))
        middle, self.half = (
            (low + high) / 2,
            0.6 * max(np.ptp(np.stack([low, high]), axis=0).max(), 1e-9),
        )
        self.ax.set(
            xlim=middle[0] + self.half * np.array([-1, 1]),
            ylim=middle[1] + self.half * np.array([-1, 1]),
            aspect="equal",
            xticks=[],
            yticks=[],
        )
        for name, place in (("left", (0.015, 0.5)), ("bottom", (0.5, 0.015))):
            self.ax.spines[name].set_color(self.theme.faint)
            upright = name == "left"
            self.ax.annotate(
                f"axis {1 + upright}: {100 * self.shares[int(upright)]:.0f} % of the variance",
                place,
                xycoords="axes fraction",
                rotation=90 if upright else 0,
                ha="left" if upright else "center",
                va="center" if upright else "bottom",
                fontsize="small",
                color=self.theme.soft,
                annotation_clip=False,
            )

    def show(self, frame: int, tokens: Discs, turn: float = 0.0) -> None:
        """Bring the picture to a frame. A plane has no camera to turn."""
        if self.words:
            self._show_words(self.seen[frame])
        else:
            order = np.argsort(-tokens.w, kind="stable")
            self.discs.set_offsets(self._project(tokens.x[order]))
            self.discs.set_sizes(areas(self.ax, tokens.w[order], self.run.n))
            self.discs.set(facecolor=colours(self.theme, tokens.group[order]))
        if self.tail:
            self._show_tails(frame)

    def _show_words(self, places: np.ndarray) -> None:
        """Words at their places; where they would overlap beside them, with a thin line to it."""
        side = min(self.ax.get_position().bounds[2:] * root_of(self.ax).get_size_inches()) * 72
        point = 2 * self.half / side  # the length of a point
        size = float(rcParams["font.size"])
        words = np.array([word.get_text() for word in self.words])
        home = _gathered(places, words, 0.8 * size * point)
        heads, count = np.unique(home, return_counts=True)
        height = size * np.minimum(1 + 0.18 * np.sqrt(count - 1), 1.7)
        width = 0.7 * height * np.array([len(words[head]) for head in heads])
        moved = apart(places[heads], 0.5 * point * np.stack([width, height], axis=1))
        for word in self.words:
            word.set_visible(False)
        for head, place, tall in zip(heads, moved, height):
            self.words[head].set(position=place, fontsize=tall, visible=True)
        far = np.linalg.norm(moved - places[heads], axis=1) > 0.6 * size * point
        self.leaders.set_segments(list(np.stack([places[heads][far], moved[far]], axis=1)))
        self.discs.set_offsets(places[heads][far])
        self.discs.set_sizes(np.full(far.sum(), 7.0))
        self.discs.set(facecolor=self.rgba[heads[far]])

    def _show_tails(self, frame: int) -> None:
        past = self.seen[max(0, frame - self.tail) : frame + 1]  # oldest first
        age = np.arange(len(past) - 1, -1, -1) / self.tail
        segments = np.stack([past[:-1], past[1:]], axis=2).reshape(-1, 2, 2)
        rgba = np.tile(self.rgba, (len(past) - 1, 1))
        rgba[:, 3] = np.repeat(0.4 * (1 - age[:-1]), self.run.n)
        self.tails.set(segments=segments, color=rgba)


def _axes(run: Story) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of all frames, the two axes of greatest spread about it, and the share of the
    variance that each of them holds.
    """
    mean = np.einsum("fnd,n->d", run.x, run.w) / (run.frames * run.w.sum())
    centred = run.x - mean
    moment = np.einsum("fni,fnj,n->ij", centred, centred, run.w, optimize=True)
    values, vectors = np.linalg.eigh(moment)
    shares = values[:-3:-1] / max(values.sum(), np.finfo(float).tiny)
    return mean, vectors[:, :-3:-1].T, shares


def _gathered(places: np.ndarray, words: np.ndarray, reach: float) -> np.ndarray:
    """For each token the first one of the same word that is within reach of it: its home."""
    near = np.linalg.norm(places[:, None] - places[None], axis=-1) <= reach
    near &= words[:, None] == words[None]
    home = np.arange(len(places))
    for token in home:
        first = near[token].argmax()
        home[token] = home[first]
    return home


def apart(places: np.ndarray, half: np.ndarray, rounds: int = 60) -> np.ndarray:
    """Boxes (m, 2) of half-widths pushed apart until none overlaps, or so many rounds are over.

    Two that overlap part along the way on which they are freed soonest.
    """
    place = places + 1e-6 * half * np.array([[np.cos(k), np.sin(k)] for k in range(len(places))])
    room = half[:, None] + half[None]
    for _ in range(rounds):
        gap = place[:, None] - place[None]
        overlap = np.maximum(room - np.abs(gap), 0)
        overlap[np.diag_indices(len(place))] = 0
        push = np.where(overlap.min(axis=-1, keepdims=True) > 0, overlap, 0)
        across = push[..., :1] <= push[..., 1:]
        push *= np.concatenate([across, ~across], axis=-1)
        if not push.any():
            break
        place += 0.3 * (push * np.where(gap >= 0, 1, -1)).sum(axis=1)
    return place


def _plain(word: str) -> str:
    """A word as it can be seen: blanks have signs, and dollars are no formulas."""
    return word.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥").replace("$", r"\$")

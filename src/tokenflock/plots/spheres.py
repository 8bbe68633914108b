"""Tokens on the sphere."""

from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Normalize, to_rgb
from matplotlib.patches import Circle

from tokenflock.errors import UserError
from tokenflock.plots._discs import COINCIDE, Discs, areas, colour_groups, colours, discs
from tokenflock.plots._landscape import LABEL, lowest, potential, steepness
from tokenflock.plots._shot import Shot
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import Theme, canvas, colour_bar, look

_PIXELS = 110  # a side of the image of the ball
_DUSK = -0.12  # the depth by which a token that goes behind the ball has become faint
_STRIDE, _FINEST = 0.12, 12  # radians of a piece of a trail, and the most pieces between frames
# where the light comes from, seen by the camera: right, up, towards us
_LIGHT = np.array([-0.45, 0.6, 0.66])


def sphere(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: float | None = None,
    tail: int = 0,
    landscape: bool = False,
    azimuth: float | None = None,
    elevation: float | None = None,
    delta: float = COINCIDE,
    clusters_at: float | None = None,
) -> Axes:
    """Tokens on the sphere at one time, seen from afar (orthographic); tokens on the far side are
    small and faint.

    For d > 3 the first three principal axes of all frames are shown, and the title says so. With
    `landscape`, the colour of the sphere is the potential of the tokens: they climb it.

    Args:
      result: a run, or a model, with d >= 3.
      ax: where to draw; a new figure unless given.
      at: the time (or layer); the last unless given. The nearest frame is shown.
      tail: how many earlier frames to draw.
      landscape: colour the sphere by the potential.
      azimuth: of the camera, in degrees; beside the place where the tokens end up unless given.
      elevation: of the camera, in degrees.
      delta: tokens whose cosine is at least 1 - delta are one disc.
      clusters_at: the time whose clusters give the colours; unless given see `trajectories`.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(3.9 if landscape else 3.4, 3.6).add_subplot()
        frame = run.frame(at)
        groups = colour_groups(run, clusters_at)
        shot = Shot("sphere", landscape, tail, azimuth, elevation)
        view = SphereView(ax, run, theme, groups, shot)
        view.show(frame, discs(run, np.array([frame]), groups, delta)[0])
        ax.set_title("\n".join(filter(None, [run.heading, run.moment(frame), view.note])))
        if landscape:
            colour_bar(ax, ScalarMappable(Normalize(view.floor, 1), theme.terrain), LABEL)
    return ax


class SphereView:
    """The artists of a sphere, brought to any frame and camera by `show`."""

    trails = "trails: the last"

    def __init__(
        self, ax: Axes, run: Story, theme: Theme, groups: np.ndarray, shot: Shot = Shot()
    ) -> None:
        if run.d < 3:
            raise UserError(f"sphere needs d >= 3, got d = {run.d}; use circle")
        self.ax, self.run, self.theme, self.tail = ax, run, theme, shot.tail
        self.beta = steepness(run) if shot.landscape else None
        self.rgba, self.terrain = colours(theme, groups), theme.terrain
        self.axes, self.note = principal_axes(run)
        self.floor = 0.0 if self.beta is None else min(lowest(run, self.beta, self.axes), 0.95)
        self.azimuth, self.elevation = _camera(run, self.axes, shot.azimuth, shot.elevation)
        ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
        ax.axis("off")
        self.ball = ax.imshow(
            shaded(theme),
            extent=(-1, 1, -1, 1),
            origin="lower",
            interpolation="bilinear",
            zorder=1,
        )
        self.ball.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
        ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08))
        self.lines = LineCollection([], linewidths=0.45, colors=theme.soft, alpha=0.3, zorder=2)
        self.rim = Circle((0, 0), 1, fill=False, ec=theme.soft, lw=0.7, zorder=2)
        self.tails = LineCollection([], zorder=3, capstyle="butt")
        self.discs: PathCollection = ax.scatter([], [], zorder=4, linewidths=0.6, clip_on=False)
        ax.add_patch(self.rim)
        ax.add_collection(self.lines, autolim=False)
        ax.add_collection(self.tails, autolim=False)
        self.artists = (
            *((self.ball,) if shot.landscape else ()),
            self.lines,
            self.rim,
            self.tails,
            self.discs,
        )

    def show(self, frame: int, tokens: Discs, turn: float = 0.0) -> None:
        """Bring the picture to a frame, with the camera turned by so many degrees."""
        camera = axes_of_view(self.azimuth + turn, self.elevation)
        self.lines.set_segments(graticule(camera))
        seen = tokens.x @ self.axes.T @ camera.T
        order = np.argsort(seen[:, 2], kind="stable")
        seen, rgba, depth = seen[order], colours(self.theme, tokens.group[order]), seen[order, 2]
        rgba[:, 3] = presence(depth)
        rim = np.tile([*to_rgb(self.theme.paper), 1.0], (len(rgba), 1))
        rim[:, 3] = np.interp(depth, [_DUSK, 0.0], [0.0, 0.9])
        self.discs.set_offsets(seen[:, :2])
        self.discs.set_sizes(areas(self.ax, tokens.w[order], self.run.n) * (0.8 + 0.3 * depth))
        self.discs.set(facecolor=rgba, edgecolor=rim)
        if self.tail:
            self._show_tails(frame, camera)
        if self.beta is not None:
            self._show_landscape(frame, camera, self.beta)

    def _show_tails(self, frame: int, camera: np.ndarray) -> None:
        past = self.run.x[max(0, frame - self.tail) : frame + 1]  # oldest first
        age = np.arange(len(past) - 1, -1, -1) / self.tail
        way = along_arcs(past) @ self.axes.T @ camera.T
        segments = np.stack([way[:-1, :, :2], way[1:, :, :2]], axis=2).reshape(-1, 2, 2)
        depth = (way[:-1, :, 2] + way[1:, :, 2]).reshape(-1) / 2
        parts = (len(way) - 1) // max(1, len(past) - 1)
        fade = np.repeat(1 - age[:-1], parts * self.run.n)
        rgba = np.tile(self.rgba, (len(way) - 1, 1))
        rgba[:, 3] = 0.85 * fade * presence(depth)
        self.tails.set(segments=segments, color=rgba, linewidth=0.4 + 1.0 * fade)

    def _show_landscape(self, frame: int, camera: np.ndarray, beta: float) -> None:
        height = potential(surface() @ camera, self.run.x[frame] @ self.axes.T, self.run.w, beta)
        rgba = self.terrain((height - self.floor) / (1 - self.floor))
        rgba[..., :3] *= (0.7 + 0.3 * lambert())[..., None]
        self.ball.set_data((255 * rgba).astype(np.uint8))


def along_arcs(path: np.ndarray) -> np.ndarray:
    """Unit vectors (frames, n, d) with points between them on great circles, as many as make the
    steps of the fastest token short: a trail stays on the ball.
    """
    angle = np.arccos(np.clip(np.einsum("fnd,fnd->fn", path[:-1], path[1:]), -1, 1))
    parts = int(np.clip(np.ceil(angle.max(initial=0) / _STRIDE), 1, _FINEST))
    if parts == 1:
        return path
    share, turn = np.arange(parts)[:, None] / parts, angle[:, None]
    # opposite ends have no great circle of their own, and equal ones need none: a chord
    curved = (turn > 1e-6) & (turn < np.pi - 1e-6)
    sine = np.where(curved, np.sin(turn), 1.0)
    start = np.where(curved, np.sin((1 - share) * turn) / sine, 1 - share)[..., None]
    end = np.where(curved, np.sin(share * turn) / sine, share)[..., None]
    between = start * path[:-1, None] + end * path[1:, None]
    return np.concatenate([between.reshape(-1, *path.shape[1:]), path[-1:]])


def principal_axes(run: Story) -> tuple[np.ndarray, str]:
    """Three axes to look at, as rows, and a note on what share of the tokens' length they hold."""
    if run.d == 3:
        return np.eye(3), ""
    moment = np.einsum("fni,fnj,n->ij", run.x, run.x, run.w, optimize=True) / run.frames
    values, vectors = np.linalg.eigh(moment)
    share = 100 * values[-3:].sum() / values.sum()
    return vectors[:, :-4:-1].T, f"first 3 of {run.d} principal axes ({share:.0f} %)"


def _camera(
    run: Story, axes: np.ndarray, azimuth: float | None, elevation: float | None
) -> tuple[float, float]:
    """Angles of the camera; unless given, a little beside the place where most tokens end up."""
    mean = axes @ (run.w @ run.x[-1])
    left = np.degrees(np.arctan2(mean[1], mean[0])) - 25 if azimuth is None else azimuth
    height = np.degrees(np.arctan2(mean[2], np.hypot(*mean[:2])))
    above = np.clip(height / 2 + 15, -40, 50) if elevation is None else elevation
    return float(left), float(above)


def axes_of_view(azimuth: float, elevation: float) -> np.ndarray:
    """Rows: right, up, and towards the camera."""
    a, e = np.radians([azimuth, elevation])
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def presence(depth: np.ndarray) -> np.ndarray:
    """How opaque a token is: fully in front, faint behind the ball."""
    return np.interp(depth, [-1.0, _DUSK, 0.0], [0.34, 0.46, 1.0])


@cache
def surface() -> np.ndarray:
    """Points of the near side of the ball under each pixel, in the frame of the camera (pixels,
    pixels, 3).
    """
    side = np.linspace(-1, 1, _PIXELS)
    a, b = np.meshgrid(side, side)
    return np.stack([a, b, np.sqrt(np.maximum(1 - a**2 - b**2, 0))], axis=-1)


@cache
def lambert() -> np.ndarray:
    """Light on the ball, between 0 and 1; half-Lambert, so that the shade has no edge."""
    return np.clip(0.5 + 0.5 * surface() @ _LIGHT, 0, 1) ** 1.4


def shaded(theme: Theme) -> np.ndarray:
    """The ball in the colours of the theme, as the light falls on it (pixels, pixels, 3)."""
    low, high = np.array(to_rgb(theme.ball[0])), np.array(to_rgb(theme.ball[1]))
    return low + (high - low) * lambert()[..., None]


def graticule(camera: np.ndarray) -> list[np.ndarray]:
    """Meridians and parallels every 30 degrees, the near side only."""
    around, along = np.radians(np.linspace(0, 360, 121)), np.radians(np.linspace(-90, 90, 61))
    meridians = [
        (np.cos(along) * np.cos(a), np.cos(along) * np.sin(a), np.sin(along))
        for a in np.radians(range(0, 360, 30))
    ]
    parallels = [
        (np.cos(b) * np.cos(around), np.cos(b) * np.sin(around), np.full_like(around, np.sin(b)))
        for b in np.radians(range(-60, 90, 30))
    ]
    lines = []
    for line in meridians + parallels:
        seen = np.stack(line, axis=1) @ camera.T
        seen[seen[:, 2] < 0] = np.nan
        lines.append(seen[:, :2])
    return lines

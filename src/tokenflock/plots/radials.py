"""A measure on the circle, drawn around it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon

from tokenflock.plots._spread import ANGLES, UNIFORM, Spread, spread
from tokenflock.plots.styles import Theme, canvas, look

_HEIGHT = 0.62  # of the peak above the circle, in its radii


def radial(
    result: xr.Dataset, *, ax: Axes | None = None, at: float | None = None, title: bool = True
) -> Axes:
    """A measure on the circle at one time: its density stands on the circle, as high as it is
    large.

    The height is scaled to the peak, whose density is written beside the picture; the dashed ring
    is the uniform measure.

    Args:
      result: a result of `meanfield.evolve` on the circle, or of `optimal_density` with a 2 by 2
        matrix.
      ax: where to draw; a new figure unless given.
      at: the time; the last unless given. The nearest frame is shown.
      title: say what is shown.
    """
    run = spread(result, theta="use density_surface")
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(3.6, 3.8).add_subplot()
        frame = run.frame(at)
        RadialView(ax, run, theme).show(frame)
        if title:
            ax.set_title(run.title(frame))
    return ax


class RadialView:
    """The artists of a radial plot, brought to any frame by `show`."""

    remark = ""

    def __init__(self, ax: Axes, run: Spread, theme: Theme) -> None:
        self.run = run
        ax.set(xlim=(-1.75, 1.75), ylim=(-1.75, 1.75), aspect="equal")
        ax.axis("off")
        for share, text in list(ANGLES.items())[:4]:
            out = np.array([np.cos(share * np.pi), np.sin(share * np.pi)])
            across, up = 0.82 * out
            ax.text(across, up, text, ha="center", va="center", color=theme.soft, fontsize="small")
            ax.plot(*np.outer(out, [0.97, 1.0]), color=theme.soft, lw=0.7, zorder=1.5)
        ax.add_patch(Circle((0, 0), 1, fill=False, ec=theme.soft, lw=0.7, zorder=3))
        self.hill = Polygon(np.zeros((2, 2)), fc=theme.palette[0], ec="none", alpha=0.3, zorder=1)
        (self.crest,) = ax.plot([], [], color=theme.palette[0], lw=1.4, zorder=2)
        self.even = Circle((0, 0), 1, fill=False, ec=theme.soft, lw=0.8, ls=(0, (4, 3)), zorder=2.5)
        self.note = ax.text(
            0, 0, "", ha="center", va="center", fontsize="small", color=theme.ink, linespacing=1.5
        )
        ax.add_patch(self.hill)
        ax.add_patch(self.even)
        self.artists = (self.hill, self.crest, self.even, self.note)

    def show(self, frame: int, turn: float = 0.0) -> None:
        """Bring the picture to a frame. A circle has no camera to turn."""
        angle, density = self.run.ring(frame)
        top = max(float(density.max()), 1.5 * UNIFORM)
        out = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        crest = out * (1 + _HEIGHT * density / top)[:, None]
        self.hill.set_xy(np.concatenate([crest, out[::-1]]))
        self.crest.set_data(*crest.T)
        self.even.set_radius(1 + _HEIGHT * UNIFORM / top)
        self.note.set_text(f"peak $\\rho$ = {density.max():.3f}\ndashed: uniform, {UNIFORM:.3f}")

"""A density on the sphere, as colour."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Circle

from tokenflock.plots._spread import LABEL, Spread, spread
from tokenflock.plots.spheres import axes_of_view, graticule, lambert, surface
from tokenflock.plots.styles import Theme, canvas, colour_bar, look


def density_surface(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: float | None = None,
    azimuth: float = 30.0,
    elevation: float = 25.0,
    title: bool = True,
) -> Axes:
    """A density on the sphere, seen from afar (orthographic), as the colour of the ball.

    For d > 3 a measure symmetric about an axis is drawn on a ball by its latitudes, and the title
    says so.

    Args:
      result: a result of `optimal_density` with a 3 by 3 matrix, or of `meanfield.evolve` with d >=
        3.
      ax: where to draw; a new figure unless given.
      at: the time; the last unless given. The nearest frame is shown.
      azimuth, elevation: of the camera, in degrees.
      title: say what is shown.
    """
    run = spread(result, latitude="use radial")
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.0, 3.5).add_subplot()
        frame = run.frame(at)
        view = BallView(
            ax,
            run,
            theme,
            norm=Normalize(0, float(run.density[frame].max())),
            azimuth=azimuth,
            elevation=elevation,
        )
        view.show(frame)
        colour_bar(ax, ScalarMappable(view.norm, theme.sequential), LABEL)
        if title:
            ax.set_title("\n".join(filter(None, [run.title(frame), view.remark])))
    return ax


class BallView:
    """The artists of a ball, brought to any frame and camera by `show`."""

    def __init__(
        self,
        ax: Axes,
        run: Spread,
        theme: Theme,
        *,
        norm: Normalize,
        azimuth: float,
        elevation: float,
    ) -> None:
        self.run, self.colours, self.norm = run, theme.sequential, norm
        self.azimuth, self.elevation = azimuth, elevation
        self.remark = f"latitudes of $S^{{{run.d - 1}}}$, drawn on $S^2$" if run.d > 3 else ""
        self.ball = ax.imshow(
            np.zeros((2, 2, 4)),
            extent=(-1, 1, -1, 1),
            origin="lower",
            interpolation="bilinear",
            zorder=1,
        )
        self.ball.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
        self.lines = LineCollection([], linewidths=0.45, colors=theme.soft, alpha=0.35, zorder=2)
        self.rim = Circle((0, 0), 1, fill=False, ec=theme.soft, lw=0.7, zorder=3)
        ax.add_collection(self.lines, autolim=False)
        ax.add_patch(self.rim)
        ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
        ax.axis("off")
        self.artists = (self.ball, self.lines, self.rim)

    def show(self, frame: int, turn: float = 0.0) -> None:
        """Bring the picture to a frame, with the camera turned by so many degrees."""
        camera = axes_of_view(self.azimuth + turn, self.elevation)
        rgba = self.colours(
            self.norm(
                np.maximum(_values(self.run, frame, surface() @ camera), self.norm.vmin or 0.0)
            )
        )
        rgba[..., :3] *= (0.86 + 0.14 * lambert())[..., None]
        self.ball.set_data(rgba)
        self.lines.set_segments(graticule(camera))


def _values(run: Spread, frame: int, points: np.ndarray) -> np.ndarray:
    """The density at points (..., 3), linear between nodes.

    A pole has the mean of the ring around it.
    """
    from scipy.interpolate import RegularGridInterpolator  # slow to import, and seldom asked for

    latitude = np.arccos(np.clip(points[..., 2] / np.linalg.norm(points, axis=-1), -1, 1))
    order = np.argsort(run.angle)
    angle, density = run.angle[order], run.density[frame][order]
    if density.ndim == 1:
        return np.interp(latitude, angle, density)
    around = run.result["longitude"].values
    north, south = (np.full((1, len(around)), ring.mean()) for ring in density[[0, -1]])
    density = np.concatenate([north, density, south])
    nodes = (np.concatenate([[0.0], angle, [np.pi]]), np.append(around, around[0] + 2 * np.pi))
    longitude = (
        np.mod(np.arctan2(points[..., 1], points[..., 0]) - around[0], 2 * np.pi) + around[0]
    )
    return RegularGridInterpolator(nodes, np.hstack([density, density[:, :1]]))(
        (latitude, longitude)
    )

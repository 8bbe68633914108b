"""Clouds on their way to their targets."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from tokenflock.errors import require
from tokenflock.plots.spheres import axes_of_view, graticule, presence, shaded
from tokenflock.plots.styles import Theme, look, note_missing, panels

_INNER = 0.42  # radius at which tokens on the circle begin
_CAMERA = (-60.0, 20.0)  # azimuth and elevation, in degrees


def steering(result: xr.Dataset) -> Figure:
    """Clouds, the ways that they took, and their targets (crosses); beside it the loss of the
    search, and, where it was measured, how near laws with so many pieces and heads come.

    On the circle time runs outwards, from the inner circle to the outer one. For d > 3 the first
    three principal axes are shown.

    Args:
      result: of `steer` or `steering.compare`.
    """
    held = {"x", "target", "loss"} <= set(map(str, result.data_vars))
    held = held and result.x.dims == ("cloud", "time", "particle", "coord")
    require(held, "result", "a result of `steer`", sorted(map(str, result.data_vars)))
    compared = "reached" in result
    with look() as theme:
        figure, axes = panels(1, 3 if compared else 2, size=(3.5, 3.3))
        note_missing(axes[0], "x", result.x)
        note_missing(axes[1], "loss", result.loss)
        x, y, d = result.x.values, result.target.values, result.sizes["coord"]
        (_circle if d == 2 else _ball)(axes[0], x, y, theme)
        axes[0].set_title(f"{len(x)} clouds and their targets")
        _losses(axes[1], result, theme)
        if compared:
            _reached(axes[2], result, theme)
    return figure


def _colours(theme: Theme, count: int) -> np.ndarray:
    shades = (*theme.palette, theme.neutral)
    return np.array([to_rgba(shades[k % len(shades)]) for k in range(count)])


def _circle(ax: Axes, x: np.ndarray, y: np.ndarray, theme: Theme) -> None:
    ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
    ax.axis("off")
    for radius in (_INNER, 1.0):
        ax.add_patch(Circle((0, 0), radius, fill=False, ec=theme.soft, lw=0.7, zorder=1))
    radii = np.linspace(_INNER, 1, x.shape[1])[:, None, None]
    for cloud, aim, colour in zip(x, y, _colours(theme, len(x))):
        ways = (radii * cloud).transpose(1, 0, 2)
        ax.add_collection(LineCollection(list(ways), colors=[colour], linewidths=0.5, alpha=0.6))
        ax.scatter(*ways[:, 0].T, s=9, color=[colour], zorder=3, linewidths=0)
        ax.scatter(*ways[:, -1].T, s=9, color=[colour], zorder=3, linewidths=0)
        ax.scatter(*aim.T, s=42, marker="x", color=theme.ink, linewidths=0.9, zorder=4)
    ax.text(0, 0, "time runs\noutwards", ha="center", va="center", color=theme.soft, size="small")


def _ball(ax: Axes, x: np.ndarray, y: np.ndarray, theme: Theme) -> None:
    ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
    ax.axis("off")
    ball = ax.imshow(shaded(theme), extent=(-1, 1, -1, 1), origin="lower", zorder=1)
    ball.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
    ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08))
    camera = axes_of_view(*_CAMERA) @ _three(x)
    lines = graticule(axes_of_view(*_CAMERA))
    ax.add_collection(LineCollection(lines, linewidths=0.45, colors=theme.soft, alpha=0.3))
    for cloud, aim, colour in zip(x, y, _colours(theme, len(x))):
        seen = cloud @ camera.T
        pairs = np.stack([seen[:-1], seen[1:]], axis=2).reshape(-1, 2, 3)
        shade = np.tile(colour, (len(pairs), 1))
        shade[:, 3] = 0.6 * presence(pairs[:, :, 2].mean(axis=1))
        ax.add_collection(LineCollection(list(pairs[:, :, :2]), colors=shade, linewidths=0.5))
        _dots(ax, seen[0], colour, 12)
        _dots(ax, seen[-1], colour, 12)
        _dots(ax, aim @ camera.T, np.array(to_rgba(theme.ink)), 42, marker="x")


def _dots(ax: Axes, seen: np.ndarray, colour: np.ndarray, size: float, marker: str = "o") -> None:
    shade = np.tile(colour, (len(seen), 1))
    shade[:, 3] = presence(seen[:, 2])
    wide = 0.9 if marker == "x" else 0
    ax.scatter(*seen[:, :2].T, s=size, c=shade, marker=marker, linewidths=wide, zorder=4)


def _three(x: np.ndarray) -> np.ndarray:
    """Three axes to look at, as rows."""
    d = x.shape[-1]
    if d == 3:
        return np.eye(3)
    flat = x.reshape(-1, d)
    return np.linalg.eigh(flat.T @ flat)[1][:, :-4:-1].T


def _losses(ax: Axes, result: xr.Dataset, theme: Theme) -> None:
    distance = np.sqrt(np.maximum(result.loss.values, 1e-16))
    ax.semilogy(np.arange(1, len(distance) + 1), distance, color=theme.palette[0])
    worst = float(result.W2.max())
    ax.axhline(worst, color=theme.palette[2], lw=0.9, ls="--")
    ax.annotate(
        f"worst cloud at the end: {worst:.2g}",
        (len(distance), worst),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        color=theme.palette[2],
        size="small",
    )
    ax.set(xlabel="step of the search", ylabel=r"root mean square of $W_2$", xlim=(1, None))
    pieces, heads = result.sizes.get("piece", 0), result.sizes.get("head", 0)
    ax.set_title(f"The search: {pieces} pieces, {heads} heads")


def _reached(ax: Axes, result: xr.Dataset, theme: Theme) -> None:
    for k, heads in enumerate(result.heads.values):
        ax.loglog(
            result.pieces,
            result.reached.sel(heads=heads),
            "o-",
            ms=4,
            color=theme.palette[k % len(theme.palette)],
            label=f"{heads} head" + ("s" if heads > 1 else ""),
        )
    ax.set_xticks(result.pieces.values, [str(depth) for depth in result.pieces.values])
    ax.set_xticks([], minor=True)
    values = result.reached.values
    decades = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    ax.set_ylim(10 ** decades[0], 10 ** max(decades[1], decades[0] + 1))
    ax.set(xlabel="pieces of time (depth)", ylabel=r"root mean square of $W_2$")
    ax.set_title("Depth and heads")
    ax.legend()

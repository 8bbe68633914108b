"""Tokens as the corners of a polyhedron on a ball, or of a polygon on a circle."""

from __future__ import annotations

from itertools import combinations
from typing import Any, cast

import numpy as np
from matplotlib.patches import Circle
from scipy.spatial import ConvexHull

from tokenflock.plots.spheres import axes_of_view, presence, shaded
from tokenflock.plots.styles import Axes, Theme

_CAMERA = (25.0, 18.0)  # azimuth and elevation, in degrees


def corners(gram: np.ndarray, d: int) -> np.ndarray:
    """Unit vectors (n, d) of these inner products, the first of them upright."""
    values, vectors = np.linalg.eigh(gram)
    x = (vectors * np.sqrt(np.maximum(values, 0)))[:, -d:]
    frame, _ = np.linalg.qr(x[:d].T)
    x = x @ (frame * np.sign(x[0] @ frame[:, 0]))
    return np.roll(x / np.linalg.norm(x, axis=1, keepdims=True), -1, axis=1)  # the last goes up


def edges(x: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of corners that an edge joins: of a polygon neighbours, else sides of the faces."""
    if x.shape[1] == 2:
        order = np.argsort(np.arctan2(x[:, 1], x[:, 0]))
        return [(int(a), int(b)) for a, b in zip(order, np.roll(order, -1))]
    sides = {
        tuple(sorted(pair)) for face in ConvexHull(x).simplices for pair in combinations(face, 2)
    }
    return [(int(a), int(b)) for a, b in sorted(sides)]


def draw_polyhedron(ax: Axes, theme: Theme, gram: np.ndarray, d: int, colour: str) -> None:
    """Corners and edges; those behind the ball are faint."""
    x = corners(gram, d)
    seen = x @ axes_of_view(*_CAMERA).T if d == 3 else np.pad(x, ((0, 0), (0, 1)))
    ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal")
    ax.axis("off")
    if d == 3:
        ball = ax.imshow(shaded(theme), extent=(-1, 1, -1, 1), origin="lower", zorder=0)
        ball.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
        ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12))
    ax.add_patch(Circle((0, 0), 1, fill=False, ec=theme.soft, lw=0.7, zorder=1))
    for a, b in edges(x):
        near = (seen[a, 2] + seen[b, 2]) / 2 >= -1e-9
        width, alpha = (1.3, 1.0) if near else (0.8, 0.45)
        ends = seen[[a, b], :2].T
        ax.plot(*ends, color=colour, zorder=2 + near, lw=width, alpha=alpha)
    dots = ax.scatter(*seen[:, :2].T, s=26, c=colour, ec=theme.paper, lw=0.5, zorder=4)
    dots.set_alpha(cast(Any, presence(seen[:, 2])))  # one for each dot

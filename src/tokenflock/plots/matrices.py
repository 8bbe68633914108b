"""The attention matrix."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.cluster.hierarchy import leaves_list, linkage

from tokenflock.errors import UserError, require, require_whole
from tokenflock.observables.attention_matrix import AttentionMatrix
from tokenflock.plots._story import Story, story
from tokenflock.plots.styles import canvas, colour_bar, look, note_missing

_MANY = 400  # up to so many tokens the order of branches is optimised too


def attention(
    result: xr.Dataset,
    *,
    ax: Axes | None = None,
    at: float | None = None,
    head: int | None = None,
    reorder: bool | None = None,
    title: bool = True,
) -> Axes:
    """The attention matrix at one time: how much each token (row) listens to each (column).

    Tokens are ordered so that near ones are neighbours, which makes clusters blocks: by angle on
    the circle, by a tree of distances elsewhere. Where their order matters (causal laws), it is
    kept.

    Args:
      result: a run of an attention dynamics, or a model with a variable `attention`.
      ax: where to draw; a new figure unless given.
      at: the time (or layer); the last unless given.
      head: which head, from 0, where the variable `attention` has an axis `head`.
      reorder: whether to reorder tokens; unless given, where the law is blind to their order.
      title: say what ran, and when.
    """
    run = story(result)
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.0, 3.7).add_subplot()
        frame = run.frame(at)
        matrix = _matrix(run, frame, head)
        note_missing(ax, "attention", matrix)
        blind = run.law is not None and run.law.exchangeable
        changed = blind if reorder is None else reorder
        order = seriation(run.x[frame]) if changed else np.arange(run.n)
        low, high = 0.5, run.n + 0.5
        image = ax.imshow(
            matrix[np.ix_(order, order)],
            cmap=theme.sequential,
            vmin=0,
            extent=(low, high, high, low),
            interpolation="nearest",
            aspect="equal",
        )
        colour_bar(ax, image, "attention $A_{ij}$")
        ordered = " (neighbours together)" if changed else ""
        ax.set(xlabel=f"token $j$ listened to{ordered}", ylabel="token $i$")
        for spot in (ax.xaxis, ax.yaxis):
            spot.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        ax.spines[:].set_visible(False)
        if title:
            ax.set_title(f"{run.heading}\n{run.moment(frame)}")
    return ax


def seriation(x: np.ndarray) -> np.ndarray:
    """An order of directions (n, d) in which near ones are neighbours."""
    n, d = x.shape
    if n <= 2:
        return np.arange(n)
    if d == 2:
        angle = np.sort(np.arctan2(x[:, 1], x[:, 0]))
        gaps = np.diff(angle, append=angle[0] + 2 * np.pi)
        # cut the circle where it is emptiest, not amid a cluster
        start = angle[(np.argmax(gaps) + 1) % n]
        places = np.mod(np.arctan2(x[:, 1], x[:, 0]) - start + 1e-9, 2 * np.pi)
        return np.argsort(places, kind="stable")
    return leaves_list(linkage(x, "average", optimal_ordering=n <= _MANY))


def _matrix(run: Story, frame: int, head: int | None) -> np.ndarray:
    """The attention matrix between the tokens that count: the result's own, or that of its
    dynamics.
    """
    stored = run.result.get("attention")
    heads = 0 if stored is None else stored.sizes.get("head", 0)
    if head is not None or heads:
        remedy = "write e.g. head=0"
        if stored is None or not heads:
            raise UserError(f"head must be left out, got {head}; there is no attention by head")
        require(head is not None, "head", f"a head from 0 to {heads - 1}", None, remedy)
        require_whole("head", head, 0, heads - 1)
        stored = stored.isel(head=head)
    if stored is not None:
        fits = stored.ndim == 3 and stored.dims[0] == "time"
        axes = "of axes (time or layer, particle, particle), perhaps with head"
        require(fits, "attention", axes, stored.dims, "select along the others")
        values = stored.isel(time=frame).values
    elif run.law is None:
        raise UserError(
            "attention needs a dynamics in the recipe or a variable `attention`, got neither;"
            " measure it first"
        )
    else:
        values = run.measured(AttentionMatrix(t=float(run.times[frame])), np.array([frame])).values[
            0
        ]
    return values[np.ix_(run.kept, run.kept)]

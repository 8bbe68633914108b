"""Branches of stationary measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from tokenflock.errors import require
from tokenflock.plots._story import plain_title
from tokenflock.plots._titles import spoken
from tokenflock.plots.styles import Theme, canvas, look, note_missing
from tokenflock.recipe import readable
from tokenflock.verbs.measure import dynamics_of

_LETTERS = {"kappa": r"$\kappa$", "beta": r"$\beta$"}


def bifurcation(
    result: xr.Dataset | Sequence[xr.Dataset],
    *,
    ax: Axes | None = None,
    title: bool = True,
    legend: bool = True,
) -> Axes:
    """A bifurcation diagram: the order parameter of stationary measures against the parameter.

    Stable states are solid, unstable ones dashed. Folds are circles; where the uniform measure is
    left is a square; where order and disorder have the same free energy is a dotted line.

    Args:
      result: a branch, or several along the same parameter.
      ax: where to draw; a new figure unless given.
      title: say what ran.
      legend: say what the lines and marks are.
    """
    branches = [result] if isinstance(result, xr.Dataset) else list(result)
    for branch in branches:
        held = {"order_parameter", "stable", "fold"} <= set(map(str, branch.data_vars))
        require(held, "result", "a branch of `meanfield.branch`", sorted(map(str, branch)))
    names = {str(branch.attrs.get("parameter", "kappa")) for branch in branches}
    require(len(names) == 1, "result", "branches along one parameter", sorted(names))
    name = names.pop()
    with look(ax) as theme:
        ax = ax if ax is not None else canvas(4.4, 3.2).add_subplot()
        orders = [branch["order_parameter"].values for branch in branches]
        note_missing(ax, "order_parameter", np.concatenate(orders))
        for k, branch in enumerate(branches):
            colour = theme.palette[k % len(theme.palette)]
            _line(ax, branch, name, colour)
            _marks(ax, branch, colour, theme)
        _uniform(ax, branches[0], theme)
        low, high = _range(branches, name)
        ax.set(xlim=(low, high), ylim=(-0.03, 1.0), ylabel="order parameter")
        ax.set_xlabel(_LETTERS.get(name, name))
        if title:
            ax.set_title(_heading(branches[0], name))
        if legend:
            _legend(ax)
    return ax


def _heading(branch: xr.Dataset, name: str) -> str:
    """What was followed: 'Noisy unnormalised, beta = 4, circle'."""
    law = dynamics_of(branch)
    if law is None:
        return plain_title(branch, "Stationary measures")
    d = readable(branch).get("d")
    place = "circle" if "theta" in branch.dims else "sphere"
    place = rf"$S^{{{d - 1}}}$" if isinstance(d, int) and d > 2 else place
    fixed = {"beta": law.inverse_temperature, "kappa": vars(law).get("kappa")}
    told = [
        f"{_LETTERS[key]} = ${value:.6g}$"
        for key, value in fixed.items()
        if key != name and isinstance(value, float)
    ]
    return ", ".join([spoken(law), *told, place])


def _line(ax: Axes, branch: xr.Dataset, name: str, colour: str) -> None:
    """The branch in stretches of one stability, which share their ends."""
    p, order = branch[name].values, branch.order_parameter.values
    stable = branch.stable.values.astype(bool)
    cuts = np.flatnonzero(np.diff(stable.astype(int))) + 1
    for first, last in zip([0, *cuts], [*cuts, len(p)]):
        part = slice(first, min(last + 1, len(p)))
        kind = bool(stable[first])
        ax.plot(
            p[part],
            order[part],
            color=colour,
            ls="-" if kind else (0, (4, 2)),
            label="ordered, stable" if kind else "ordered, unstable",
        )


def _marks(ax: Axes, branch: xr.Dataset, colour: str, theme: Theme) -> None:
    style = {"ls": "", "zorder": 4, "mec": theme.ink, "mew": 0.8}
    if branch.fold.size:
        ax.plot(
            branch.fold,
            branch.fold_order_parameter,
            marker="o",
            ms=5,
            mfc=theme.paper,
            label="fold",
            **style,
        )
    if "leaves" in branch:
        ax.plot(
            [float(branch.leaves)], [0.0], marker="s", ms=4.5, mfc=colour, label="onset", **style
        )
    for value in np.atleast_1d(branch.transition.values):
        ax.axvline(value, color=theme.soft, lw=0.8, ls=":", zorder=0, label="equal free energy")


def _uniform(ax: Axes, branch: xr.Dataset, theme: Theme) -> None:
    """The uniform measure along the axis."""
    if "uniform_rate" not in branch:
        return
    level, stable = branch.level.values, branch.uniform_rate.values < 0
    edge = float(branch.leaves) if "leaves" in branch else None
    for kind in (True, False):
        here = np.where(stable == kind, level, np.nan)
        if edge is not None and np.isfinite(here).any():
            here = np.sort(np.append(here, edge))
        ax.plot(
            here,
            np.zeros_like(here),
            color=theme.neutral,
            ls="-" if kind else (0, (4, 2)),
            label="uniform, stable" if kind else "uniform, unstable",
        )


def _range(branches: list[xr.Dataset], name: str) -> tuple[float, float]:
    values = [branch[name].values for branch in branches]
    values += [branch.level.values for branch in branches if "level" in branch]
    every = np.concatenate(values)
    return float(every.min()), float(every.max())


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    table = dict(zip(labels[::-1], handles[::-1]))  # the first of each name
    names = [name for name in dict.fromkeys(labels)]
    ax.legend([table[name] for name in names], names, loc="best")

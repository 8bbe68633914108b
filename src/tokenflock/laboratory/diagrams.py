"""Phase diagrams as a page shows them: small tables of numbers, beta across and time up."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock.errors import UserError, require
from tokenflock.recipe import readable
from tokenflock.verbs.accuracy import DISTANCE

MOST = 64  # rows and columns of a table


def is_diagram(result: xr.Dataset) -> bool:
    """Whether a result is an ensemble over beta in time."""
    return {"beta", "time"} <= set(result.sizes) and "x" not in result


def chart(result: xr.Dataset, name: str | None = None, title: str | None = None) -> dict[str, Any]:
    """A diagram as a table: the mean of an observable over beta and time, with the curve of theory
    where there is one.
    """
    require(is_diagram(result), "result", "a phase diagram over beta and time", dict(result.sizes))
    shown = name or _name(result)
    values = result[shown].transpose("beta", "time")
    beta, time = _thinned(result.beta.values), _thinned(result.time.values)
    table = values.sel(beta=beta, time=time).values.astype(float)
    recipe = readable(result)
    made = {
        "title": title or str(result.attrs.get("title", "phase diagram")),
        "name": shown.replace("_", " "),
        "note": _note(result, recipe),
        "beta": _short(beta),
        "time": _short(time),
        "values": _short(table.reshape(-1), 3),
        "range": [float(np.nanmin(table)), float(np.nanmax(table))],
        "h": float((recipe.get("solver") or {}).get("h", 0.1)),
        "state": _state(recipe),
    }
    if "transition" in result:
        curve = result.transition.sel(time=time).values
        made["transition"] = [None if np.isnan(each) else float(each) for each in curve]
    return made


def _name(result: xr.Dataset) -> str:
    """The observable that a diagram shows."""
    names = [str(name) for name in result.data_vars if set(result[name].dims) == {"beta", "time"}]
    names = [name for name in names if not name.endswith(("_error", "_std", "_spread", DISTANCE))]
    if not names:
        raise UserError("the diagram holds no observable over beta and time; observe one")
    return "pair_density" if "pair_density" in names else names[0]


def _thinned(values: np.ndarray) -> np.ndarray:
    places = np.unique(np.linspace(0, len(values) - 1, min(MOST, len(values))).round().astype(int))
    return values[places]


def _short(values: np.ndarray, digits: int = 6) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]


def _note(result: xr.Dataset, recipe: dict[str, Any]) -> str:
    repeats = recipe.get("repeats")
    curve = ", the line is the transition that theory predicts" if "transition" in result else ""
    many = f"{repeats:,} systems for each beta" if isinstance(repeats, int) else "an ensemble"
    return f"{many}{curve}. Click to run one system."


def _state(recipe: dict[str, Any]) -> dict[str, Any]:
    """The state of the lab that a click starts: the same law, start and solver."""
    law, start, solver = (recipe.get(key) or {} for key in ("dynamics", "start", "solver"))
    state: dict[str, Any] = {}
    for key, part in (("law", law), ("start", start), ("solver", solver)):
        if "type" in part:
            state[key] = str(part["type"]).rpartition("/")[2]
    for key in ("n", "d"):
        if isinstance(start.get(key), int):
            state[key] = start[key]
    if isinstance(solver.get("h"), (int, float)):
        state["h"] = float(solver["h"])
    return state

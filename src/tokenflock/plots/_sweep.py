"""An ensemble as plots read it: one observable over time and one swept parameter, and the words for
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.errors import UserError, all_numbers, finite_numbers, require
from tokenflock.plots._story import literal, plain_title, time_label
from tokenflock.plots._titles import spoken
from tokenflock.starts.start import Start
from tokenflock.verbs.accuracy import ABOUT, DISTANCE, ERROR
from tokenflock.verbs.measure import dynamics_of

_DERIVED = (
    "_error",
    "_quantile",
    ERROR,
    DISTANCE,
)  # endings of what comes along with an observable
_WORDS = {
    "beta": r"inverse temperature $\beta$",
    "n": "tokens $n$",
    "d": "dimension $d$",
    "h": "step $h$",
    "delta": r"threshold $\delta$",
}
_SYMBOLS = {"beta": r"$\beta$", "delta": r"$\delta$"}


@dataclass(frozen=True)
class Sweep:
    """A mean over repeats for each value of a parameter at each time."""

    parameter: str  # beta, or a path such as dynamics.base.beta
    values: np.ndarray  # (m,), ascending
    times: np.ndarray  # (frames,)
    mean: np.ndarray  # (m, frames)
    error: np.ndarray | None  # its standard error
    observable: str
    long_name: str
    front: xr.DataArray | None  # the parameter at which theory has the transition (frames,)
    facts: dict[str, str]  # what ran, by topic
    convention: str
    label: str  # of the axis of frames
    axis: str = "time"

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self.times)

    @property
    def parameter_label(self) -> str:
        """What the axis of the parameter is called on a plot."""
        return _WORDS.get(_last(self.parameter), symbol(self.parameter))


def sweep(result: xr.Dataset, observable: str | None = None) -> Sweep:
    """Read an ensemble, or say what is wrong with it."""
    name = observable or _first(result)
    require(
        name in result.data_vars,
        "observable",
        f"one of {', '.join(_observables(result)) or 'none'}",
        repr(name),
    )
    table = result[name]
    others = [str(dim) for dim in table.dims if dim != "time"]
    fits = (
        "time" in table.dims
        and len(others) == 1
        and np.issubdtype(result[others[0]].dtype, np.number)
    )
    require(
        fits, name, "of axes (parameter, time), the parameter a number", table.dims, _remedy(others)
    )
    parameter = others[0]
    require(table.size > 0, name, "of axes that are not empty", dict(table.sizes))
    for axis in (parameter, "time"):
        finite_numbers(axis, result[axis].values)
    all_numbers(name, table.values)
    ordered = result.sortby([parameter, "time"]).transpose(parameter, "time", ...)
    error = ordered.get(f"{name}_error")
    front = ordered.get("transition")
    convention = literal(result.attrs.get("convention", ""))
    counted = "time" not in result.coords or (
        result["time"].dtype.kind in "iu" and "long_name" not in result["time"].attrs
    )
    return Sweep(
        # without its values an axis counts places, which are no values of the parameter
        parameter=parameter if parameter in result.coords else f"place in {parameter}",
        values=ordered[parameter].values.astype(float),
        times=ordered["time"].values.astype(float),
        mean=ordered[name].values,
        error=error.values if error is not None and bool(error.notnull().any()) else None,
        observable=name,
        long_name=literal(table.attrs.get("long_name", name.replace("_", " "))),
        front=(
            front
            if front is not None
            and front.dims == ("time",)
            and _last(parameter) == "beta"
            and parameter in result.coords
            else None
        ),
        facts=_facts(result),
        convention=convention,
        label="frame" if counted else time_label(convention),
    )


def symbol(name: str) -> str:
    """A parameter as letters of a formula where it is one letter, as words where it is not."""
    last = _last(name)
    return _SYMBOLS.get(last, f"${last}$" if len(last) == 1 else last.replace("_", " "))


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _observables(result: xr.Dataset) -> list[str]:
    names = [str(name) for name in result.data_vars]
    derived = [name + end for name in names for end in _DERIVED]
    return [name for name in names if name not in (*derived, *ABOUT, "transition")]


def _first(result: xr.Dataset) -> str:
    """The first observable that is one number a system, else the first of all, about which the
    caller complains.
    """
    names = _observables(result)
    require(
        len(names) > 0,
        "result",
        "a Dataset with an observable, as from ensemble",
        sorted(map(str, result.data_vars)),
    )
    return next(
        (name for name in names if result[name].ndim == 2 and "time" in result[name].dims), names[0]
    )


def _remedy(others: list[str]) -> str:
    if "repeat" in others:
        return "run without keep=True, or take result.mean('repeat', keep_attrs=True)"
    return (
        f"select one, e.g. result.isel({others[-1]}=0)"
        if len(others) > 1
        else "sweep a parameter, e.g. over={'beta': [...]}"
    )


def _facts(result: xr.Dataset) -> dict[str, str]:
    """What ran, by topic. A swept parameter is told only where one of its values was selected."""
    recipe = recipes.readable(result)
    known: dict[str, object] = {}
    law = dynamics_of(result)
    words = plain_title(result, "") if law is None else spoken(law)
    known["beta"] = None if law is None else law.inverse_temperature
    known["n"], known["d"] = _shape(recipe)
    over = recipe.get("over")
    for name in over if isinstance(over, dict) else {}:
        known[_last(name)] = (
            result[name].item() if name in result.coords and result[name].ndim == 0 else None
        )
    numbers = {
        name: f"{symbol(name)} = {value:.6g}"
        for name, value in known.items()
        if isinstance(value, (int, float))
    }
    repeats = (
        {"repeats": f"{recipe['repeats']} repeat{'s' * (recipe['repeats'] != 1)}"}
        if isinstance(recipe.get("repeats"), int)
        else {}
    )
    return ({"dynamics": words} if words else {}) | numbers | repeats


def _shape(recipe: dict) -> tuple[int | None, int | None]:
    try:
        start = recipes.rebuild(recipe.get("start"))
    except UserError:
        return None, None
    return start.shape if isinstance(start, Start) else (None, None)

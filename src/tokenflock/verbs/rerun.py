"""`rerun`: the recipe of a result, run again, as it was, in part, or with changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.errors import UserError, checked, one_schedule, require
from tokenflock.meanfield.evolution import evolve
from tokenflock.solvers.solver import Solver
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.asked import check_repeats
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.phase_diagram import with_transition
from tokenflock.verbs.schedule import FRAMES, LAST, When, schedule
from tokenflock.verbs.simulate import Setting, simulate

_LATER = {  # what recipes of older versions lack, and what it meant then
    "until": None,
    "coalesce": None,
    "noise": None,
    "part": {},
    "solver_given": True,
    "tolerance": None,
}
_COMMON = ("t", "times", "frames")
_VERBS = {
    "simulate": (*_COMMON, "solver", "until", "observe", "seed", "dtype", "coalesce"),
    "ensemble": (
        *_COMMON,
        "over",
        "repeats",
        "solver",
        "observe",
        "until",
        "matrices",
        "quantiles",
        "keep",
        "seed",
        "dtype",
        "engine",
        "rotate",
        "settle",
        "tolerance",
        "part",
    ),
    "evolve": (*_COMMON, "d", "points", "rtol", "atol"),
}
_ROLES = ("dynamics", "start")
_PREDICTING = (*_ROLES, "solver", "observe")  # what the curve of a phase diagram is made of


def rerun(result: xr.Dataset, **changes: Any) -> xr.Dataset:
    """Run the recipe of a result of `simulate`, `ensemble` or `evolve` again.

    Of a selected part (`result.sel(beta=4)`, `result.isel(time=slice(5))`) that part runs: the same
    systems, at the same times. `changes` are options of the verb (seed=1, t=60, solver=RK4()), or
    parameters of the law, the start, the solver or the observables, by name or dotted path, as in
    `over` of an ensemble: beta=9, n=64, **{"dynamics.base.beta": 9}. A swept parameter takes a list
    of other values, or one value for all.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> run = flock.simulate(SelfAttention(beta=4.0), Uniform(n=8, d=2), t=3, seed=5)
    >>> bool((flock.rerun(run).x == run.x).all())
    True
    >>> flock.rerun(run, beta=9, n=4).attrs["title"]
    'tokenflock: SelfAttention(beta=9.0, repulsive=False)'
    """
    name = recipes.plain_recipe(result).get("verb", "a Dataset without a recipe")
    known = isinstance(name, str) and name in _VERBS
    require(known, "result", f"one of {', '.join(_VERBS)}", f"{name!r:.80}")
    recipe = _LATER | recipes.loads(result.attrs["recipe"])
    lacking = [key for key in (*_ROLES, *_VERBS[name]) if key not in recipe]
    require(not lacking, "the recipe", "complete", f"one without {', '.join(lacking)}")
    _check(name, recipe)
    chosen, shape = _part(result, recipe)
    changed = _changed(recipe | chosen, changes, _VERBS[name])
    again = _RUN[name](changed)
    if "transition" in result and "beta" in (changed.get("over") or {}):  # a phase diagram
        again = with_transition(again, *(changed[key] for key in _PREDICTING))
    return shape(again) if not changes else again


def _check(name: str, recipe: dict[str, Any]) -> None:
    """Refuse numbers that are none, before a part is looked for among them."""
    When(*(recipe[key] for key in _COMMON)).check()
    if name == "ensemble":
        check_repeats(recipe["repeats"])
        for key in ("over", "part"):
            table = recipe[key] or {}
            require(isinstance(table, Mapping), key, "values by name", f"{table!r:.80}")
        for key, values in (recipe["over"] or {}).items():
            sweeps.swept_values(key, values)


def _simulate(recipe: dict[str, Any]) -> xr.Dataset:
    """With the noise of another verb, where the recipe has it."""
    options = {key: recipe[key] for key in _VERBS["simulate"]}
    if recipe["noise"] is None:
        return checked(simulate)(recipe["dynamics"], recipe["start"], **_timed(options))
    when = When(*(options.pop(key) for key in _COMMON))
    parts = {key: recipe[key] for key in (*_ROLES, "noise")}
    return Setting(when=when, **parts, **options).run()


def _timed(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a recipe's t and frames what its times say: older recipes keep all three."""
    return options | ({} if options["times"] is None else {"t": None, "frames": None})


def _ensemble(recipe: dict[str, Any]) -> xr.Dataset:
    options = _timed({key: recipe[key] for key in _VERBS["ensemble"]})
    if not recipe["solver_given"]:
        options["solver"] = None
    return checked(ensemble)(recipe["dynamics"], recipe["start"], **options)


def _evolve(recipe: dict[str, Any]) -> xr.Dataset:
    options = _timed({key: recipe[key] for key in _VERBS["evolve"]})
    return checked(evolve)(recipe["dynamics"], recipe["start"], **options)


_RUN = {"simulate": _simulate, "ensemble": _ensemble, "evolve": _evolve}


# --------------------------------------------------------------------------------------------------
# changes


def _changed(
    recipe: dict[str, Any], changes: dict[str, Any], options: Sequence[str]
) -> dict[str, Any]:
    """The recipe with other options and parameters."""
    one_schedule(changes.get("t"), changes.get("times"), changes.get("frames"), LAST, FRAMES)
    for name, value in changes.items():
        if name == "part":
            raise UserError("rerun finds the part itself; select it: rerun(result.sel(beta=4))")
        if name in (*options, *_ROLES):
            recipe = recipe | {name: value} | _undone(name, recipe)
        else:
            recipe = _parameter(recipe, name, value)
    return recipe


def _undone(name: str, recipe: dict[str, Any]) -> dict[str, Any]:
    """What an option takes with it: other times, another noise, systems with other numbers."""
    if name in ("t", "frames"):
        return {"times": None}
    if name == "solver":
        return {"solver_given": True}
    if name == "seed":
        return {"noise": None}
    if name == "over":
        return {"part": {key: at for key, at in recipe["part"].items() if key == "repeat"}}
    if name == "repeats":
        return {"part": {key: at for key, at in recipe["part"].items() if key != "repeat"}}
    return {}


def _parameter(recipe: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The recipe with another value of a parameter; a swept one is swept over others."""
    over = dict(recipe.get("over") or {})
    if name in over:
        part = {key: at for key, at in recipe["part"].items() if key != name}
        if np.ndim(value) > np.ndim(np.asarray(over[name])[0]):
            return recipe | {"over": over | {name: np.asarray(value)}, "part": part}
        del over[name]
        recipe = recipe | {"over": over, "part": part}
    parts = {role: recipe.get(role) for role in sweeps.ROLES}
    parts["observe"] = tuple(parts["observe"] or ())
    path = sweeps.find(name, parts, told="rerun")
    given = {"solver_given": True} if path[0] == "solver" else {}
    return recipe | sweeps.put(parts, path, value) | given


# --------------------------------------------------------------------------------------------------
# parts


def _part(
    result: xr.Dataset, recipe: dict[str, Any]
) -> tuple[dict[str, Any], Callable[[xr.Dataset], xr.Dataset]]:
    """What of a recipe a selected part is (other values of its keys), and how to give what runs
    then the shape of the part.
    """
    chosen, single = {}, {}
    if recipe["verb"] == "ensemble":
        over, part = {}, dict(recipe["part"])
        for name, values in (recipe["over"] or {}).items():
            places = _places(result, name, values)
            over[name] = np.asarray(values)[places]
            part |= _within(recipe, name, places, len(values))
        places = _places(result, "repeat", _repeats(recipe))
        part |= _within(recipe, "repeat", places, recipe["repeats"])
        chosen = {"over": over, "repeats": len(places), "part": part}
        single = {
            name: 0
            for name in (*over, "repeat")
            if name in result.coords and result[name].ndim == 0
        }
    times = _times(result, recipe)
    chosen |= {} if times is None else {"times": times}

    def shaped(again: xr.Dataset) -> xr.Dataset:
        again = again.isel({name: k for name, k in single.items() if name in again.dims})
        if times is not None and "time" in again.dims:
            again = again.sel(time=result["time"], method="nearest")
        return again

    return chosen, shaped


def _repeats(recipe: dict[str, Any]) -> np.ndarray:
    return np.asarray(recipe["part"].get("repeat", (range(recipe["repeats"]), 0))[0])


def _places(result: xr.Dataset, name: str, values: Any) -> np.ndarray:
    """Which values of an axis a result still has; all of them where it does not say."""
    array = np.asarray(values)
    if name not in result.coords:
        return np.arange(len(array))
    labels = array if array.ndim == 1 else np.arange(len(array))
    kept = np.atleast_1d(result[name].values)
    places = [np.flatnonzero(np.isclose(labels, value, rtol=1e-9, atol=0)) for value in kept]
    if not all(len(place) for place in places):
        raise UserError(f"result has values of {name!r} that its recipe does not have")
    return np.array([int(place[0]) for place in places])


def _within(
    recipe: dict[str, Any], name: str, places: np.ndarray, count: int
) -> dict[str, tuple[list[int], int]]:
    """The places of a part in the whole ensemble; nothing where it is all of it."""
    before, size = recipe["part"].get(name, (range(count), count))
    whole = len(places) == count and bool((places == np.arange(count)).all())
    if whole:
        return {}
    return {name: ([int(before[place]) for place in places], int(size))}


def _times(result: xr.Dataset, recipe: dict[str, Any]) -> list[float] | None:
    """The times of a part, or None where it has all that were kept.

    An event cuts a run short and adds its own time: neither makes it a part.
    """
    solver = recipe.get("solver")
    if "time" not in result.coords or not isinstance(solver, Solver) or _swept_step(recipe):
        return None
    _, kept = schedule(solver, recipe["t"], recipe["times"], recipe["frames"])
    have = np.atleast_1d(result["time"].values)
    near = np.isclose(have[:, None], kept, rtol=1e-6, atol=1e-12)
    found = np.asarray(near.any(axis=1))
    by_event = _ends_by_event(result, have[-1])
    if not found[: len(found) - by_event].all():
        raise UserError("result has values of 'time' that its recipe does not have")
    known = near.argmax(axis=1)[found]
    whole = len(known) == len(kept) or by_event
    if len(known) == 0 or (whole and bool((known == np.arange(len(known))).all())):
        return None
    return [float(kept[k]) for k in known]


def _swept_step(recipe: dict[str, Any]) -> bool:
    """Whether an ensemble has several steps, and so no common times."""
    return any(name in ("h", "step", "solver.h") for name in recipe.get("over") or {})


def _ends_by_event(result: xr.Dataset, last: float) -> bool:
    """Whether the last frame of a trajectory is the event that ended it."""
    _, stopped, time = str(result.attrs.get("stopped", "")).rpartition(" at t = ")
    return bool(stopped) and bool(np.isclose(last, float(time), rtol=1e-8))

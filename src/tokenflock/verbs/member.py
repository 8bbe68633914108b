"""`member`: one system of an ensemble, as a trajectory."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.choose import packet
from tokenflock.engines.systems import Systems
from tokenflock.errors import UserError, require
from tokenflock.precision import precision
from tokenflock.solvers.solver import Solver
from tokenflock.starts.given import Given
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.accuracy import REFUSED, schemes
from tokenflock.verbs.schedule import When, schedule
from tokenflock.verbs.simulate import Setting


def member(result: xr.Dataset, repeat: int | None = None, **where: Any) -> xr.Dataset:
    """One system of an ensemble again, as a trajectory: from the same tokens, with the same random
    matrices and the same noise, under the same solver.

    Args:
      result: of `ensemble` or `phase_diagram`. An event of the ensemble is that of the trajectory.
      repeat: which of the systems of a cell. Unless given, the one that was selected from the
        result, e.g. by result.isel(repeat=4), or else the first.
      where: the cell, one value for each parameter that was swept, e.g. beta=4. A value that was
        selected from the result may be left out.

    Returns what `simulate` returns; its recipe has the tokens and runs again. Tokens are given in
    all d coordinates, where an engine may have turned them into n.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> over = {"beta": [1.0, 4.0]}
    >>> many = flock.ensemble(SelfAttention(), Uniform(n=8, d=2), over=over, repeats=16, t=5)
    >>> flock.member(many, beta=4, repeat=7).attrs["title"]
    'tokenflock: SelfAttention(beta=4.0, repulsive=False)'
    """
    verb = recipes.plain_recipe(result).get("verb", "a Dataset without a recipe")
    require(verb == "ensemble", "result", "an ensemble", f"{verb!r:.80}")
    recipe = {"until": None, "part": {}} | recipes.loads(result.attrs["recipe"])
    parts, number, places = _cell(result, recipe, where)
    dtype = recipe["dtype"]
    when = When(recipe["t"], recipe["times"], recipe["frames"])
    kept = schedule(parts["solver"], *when)[1]
    end = float(kept[-1])
    system = np.array([number, _repeat(result, recipe, repeat)])
    law, start = parts["dynamics"], parts["start"]
    systems = Systems(law, start, recipe["matrices"], recipe["seed"], dtype, end, False)
    with precision(dtype):
        # as many as an engine draws at once: the same numbers to the last bit
        ids = np.tile(system, (packet(*systems.start.shape), 1))
        tokens, keys = systems.drawn(ids)
        noise = np.asarray(jax.random.key_data(keys))[0]
        law = _with_matrices(law, systems, system[None])
    given = start
    if not isinstance(start, Given):
        even = bool((start.weights() == start.weights()[0]).all())
        given = Given(np.asarray(tokens)[0], None if even else start.weights())
    solver = _solver(result, recipe, law, parts, places)
    if solver != parts["solver"]:  # the frames of all cells are those of the first solver
        when = When(end, kept, len(kept))
    setting = Setting(
        law,
        given,
        when,
        solver,
        recipe["until"],
        parts["observe"],
        recipe["seed"],
        dtype,
        None,
        [int(word) for word in noise],
    )
    return setting.run()


def _cell(
    result: xr.Dataset, recipe: dict[str, Any], where: dict[str, Any]
) -> tuple[dict[str, Any], int, dict[Any, tuple[float, int]]]:
    """Return (the law, start, solver and observables of a cell, its number in the whole ensemble,
    its label and its place in the recipe on each axis).
    """
    parts: dict[str, Any] = {role: recipe[role] for role in sweeps.ROLES}
    parts["observe"] = tuple(parts["observe"])
    law, start, solver, observe = parts.values()
    axes = sweeps.axes(recipe["over"] or {}, law, start, solver, observe, recipe["part"])
    unknown = [name for name in where if name not in {axis.name for axis in axes}]
    if unknown:
        names = ", ".join(axis.name for axis in axes) or "none"
        raise UserError(f"member: the ensemble does not sweep {unknown[0]!r}; it sweeps {names}")
    chosen = [(axis, _place(result, axis, where)) for axis in axes]
    for axis, k in chosen:
        parts = sweeps.put(parts, axis.path, axis.value(k))
    whole = tuple(axis.whole for axis in axes)
    places = tuple(axis.place(k) for axis, k in chosen)
    require(isinstance(parts["solver"], Solver), "the recipe", "complete", "one without a solver")
    number = int(np.ravel_multi_index(places, whole)) if whole else 0
    return parts, number, {axis.name: (axis.coordinate[k], k) for axis, k in chosen}


def _place(result: xr.Dataset, axis: sweeps.Axis, where: dict[str, Any]) -> int:
    """Which value of an axis is meant: the given one, the selected one, or the only one."""
    labels = axis.coordinate
    value = where.get(axis.name)
    if value is None and axis.name in result.coords and result[axis.name].ndim == 0:
        value = result[axis.name].item()
    if value is None and len(labels) == 1:
        return 0
    shown = ", ".join(f"{label:g}" for label in labels[:9]) + (", ..." if len(labels) > 9 else "")
    if value is None:
        raise UserError(f"{axis.name} must be one of {shown}, got none; write {axis.name}=...")
    near = np.flatnonzero(np.isclose(labels, float(value), rtol=1e-9, atol=1e-12))
    require(len(near) > 0, axis.name, f"one of {shown}", value)
    return int(near[0])


def _solver(
    result: xr.Dataset,
    recipe: dict[str, Any],
    law: Dynamics,
    parts: dict[str, Any],
    chosen: dict[Any, tuple[float, int]],
) -> Solver:
    """Return the solver that ran a cell: the one of the recipe, or the one that `scheme` names."""
    if "scheme" not in result:
        return parts["solver"]
    tried = schemes(law, recipe["tolerance"])
    ran = _scheme(result, chosen)
    cell = {name: label for name, (label, _) in chosen.items()}
    require(ran != REFUSED, "result", "a cell that was not refused", cell)
    return tried[ran]


def _scheme(result: xr.Dataset, chosen: dict[Any, tuple[float, int]]) -> int:
    """Return the number of the solver that ran a cell, given by its label and place on each axis.

    The result may be a part of the ensemble or in another order, so labels say where a cell is.
    """
    scheme = result["scheme"]
    for name, (label, place) in chosen.items():
        if name not in result.coords:  # nothing says what was selected
            whole = name in scheme.dims and scheme.sizes[name] > place
            known = sorted(map(str, result.coords))
            require(whole, "result", f"one with the coordinate {name!r}", known)
            scheme = scheme.isel({name: place})
            continue
        left = np.atleast_1d(result[name].values)
        near = np.flatnonzero(np.isclose(left, label, rtol=1e-9, atol=1e-12))
        require(len(near) > 0, name, f"one that the result still has: {left!r:.80}", label)
        scheme = scheme.isel({name: near[0]}) if name in scheme.dims else scheme
    return int(scheme)


def _repeat(result: xr.Dataset, recipe: dict[str, Any], repeat: int | None) -> int:
    """Return the number of a repeat: the given one, the selected one, or the first."""
    known = recipe["part"].get("repeat", (range(recipe["repeats"]), 0))[0]
    if repeat is None:
        left = np.atleast_1d(result["repeat"].values) if "repeat" in result.coords else known
        repeat = int(left[0])
    fine = isinstance(repeat, (int, np.integer)) and repeat in known
    require(fine, "repeat", f"a whole number from {min(known)} to {max(known)}", repeat)
    return int(repeat)


def _with_matrices(law: Dynamics, systems: Systems, ids: np.ndarray) -> Dynamics:
    """The law with the random matrices of a system, where there are any."""
    if systems.matrices is None:
        return law
    B, V = systems.matrices_of(ids)
    return systems.matrices.fill(law, B[0], None if V is None else V[0])

"""The state that a page opens with: a law, a start and a solver of Python as values of the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from tokenflock.catalogue import Entry, entries
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.errors import require, require_whole
from tokenflock.frozen import Frozen
from tokenflock.laboratory import building, schema, shelf, specimens, tables
from tokenflock.laboratory.collection import known, words
from tokenflock.laboratory.cutting import DELTA, cut
from tokenflock.precision import cast, precision
from tokenflock.solvers.layer import Layer
from tokenflock.solvers.solver import FixedStep
from tokenflock.spaces import Sphere
from tokenflock.starts.start import Start
from tokenflock.starts.uniform import Uniform
from tokenflock.verbs.prepare import prepare

MOST_GIVEN = 2000  # tokens that are written into a page one by one
MOST_TOKENS = 20_000  # that a page takes, and
MOST_SEED = 2**53 - 1  # the largest whole number of JavaScript: both as in state.js


def check(start: Start, solver: FixedStep | None, seed: int) -> None:
    """Refuse what no page shows, before a law is traced for it."""
    require_whole("seed", seed, 0, MOST_SEED)
    n = start.shape[0]
    require(n <= MOST_TOKENS, "n", f"{MOST_TOKENS:,} or less in the lab", n, "write e.g. n=512")
    fixed = solver is None or isinstance(solver, FixedStep)
    name = type(solver).__name__
    require(fixed, "solver", "one of fixed step, in the lab", name, "use Layer or RK4")


def opening(
    collection: dict[str, Any],
    law: Dynamics | None,
    start: Start,
    solver: FixedStep | None,
    seed: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The collection, with the law added where the catalogue has no such variant, and the state."""
    law = law or SelfAttention(beta=4.0)
    d = start.shape[1]
    told = _fitted(collection["schema"], law, d, solver)
    if told is None:
        collection, told = _added(collection, law, d, solver)
    state = told | _timed(law, solver) | {"seed": seed}
    return collection, state | _placed(collection["schema"], law, start, seed)


def usual(collection: dict[str, Any]) -> dict[str, Any]:
    """The state that a page opens with where nothing is said, and its tokens."""
    start = Uniform(n=64, d=3)
    _, state = opening(collection, None, start, None, 0)
    return {"state": state, "given": exact(None, start, 0, state)}


def alone(
    law: Dynamics | None,
    start: Start,
    solver: FixedStep | None,
    seed: int,
    panels: Sequence[str] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A collection of one law, for a small page, and its state: cut out of what is there, else
    traced.
    """
    law, d = law or SelfAttention(beta=4.0), start.shape[1]
    ready = known()
    told = None if ready is None else _fitted(ready["schema"], law, d, solver)
    if ready is None or told is None or isinstance(law, Block):
        return _traced(law, start, solver, seed)
    state = told | _timed(law, solver) | {"seed": seed} | _placed(ready["schema"], law, start, seed)
    return cut(ready, {"start": "Uniform", **state}, panels)


def _traced(
    law: Dynamics, start: Start, solver: FixedStep | None, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A collection of one law that is traced now, and its state."""
    kept, d = shelf.Shelf(), start.shape[1]
    used = solver or specimens.solvers(law)[0]
    entry = shelf.given(kept, law, d, used)
    host = "sphere" if isinstance(law.space, Sphere) else "flat"
    told = {
        "laws": [entry],
        "starts": shelf.starts(kept, (d,), ["Uniform", type(start).__name__]),
        "solvers": [schema.solver(used)],
        "lenses": shelf.lenses(kept, (d,), [host], [DELTA]),
        "deltas": [DELTA],
        "matrices": {},
        **words(),
    }
    collection = {"schema": told, "programs": kept.programs, "theory": {str(d): tables.energies(d)}}
    state = {"law": entry["name"], "d": d, "seed": seed} | _timed(law, solver)
    return collection, state | _placed(told, law, start, seed)


def _timed(law: Dynamics, solver: FixedStep | None) -> dict[str, Any]:
    """The solver of a page and its step, and which of the two was chosen: the page divides a step
    that was not.
    """
    used = solver or specimens.solvers(law)[0]
    chosen = "" if solver is None else "step"
    return {"solver": type(used).__name__, "h": float(used.h), "chosen": chosen}


def _fitted(told: dict, law: Dynamics, d: int, solver: FixedStep | None) -> dict[str, Any] | None:
    """The state of a law that the page holds already; None where it does not."""
    entry = next((each for each in entries("dynamics") if each.load() is type(law)), None)
    listed = next((each for each in told["laws"] if entry and each["name"] == entry.name), None)
    if entry is None or listed is None:
        return None
    if "built" in listed:
        return _built(listed, law, d, solver)
    filled = _filled(entry, law, d)
    for key, specimen in _variants(entry, d):
        variant = listed["variants"].get(key)
        if variant is None or not _alike(filled, specimen):
            continue
        names = variant["programs"].get(str(d), {})
        if type(solver or specimens.solvers(law)[0]).__name__ not in names:
            return None
        chosen = dict(zip((choice["name"] for choice in listed["choices"]), key.split(",")))
        return {"law": listed["name"], "choices": chosen, "d": d, "values": _numbers(filled)}
    return None


def _built(listed: dict, law: Any, d: int, solver: FixedStep | None) -> dict[str, Any] | None:
    """The state of a block whose parts the builder of the page offers; None where it does not."""
    if d not in listed["built"]["dimensions"] or not isinstance(solver or Layer(), Layer):
        return None
    chosen = {
        name: next((word for word, part in words.items() if _alike(law.parts[name], part)), None)
        for name, words in building.offered().items()
    }
    if None in chosen.values() or not isinstance(law.beta, float):
        return None
    return {"law": listed["name"], "choices": chosen, "d": d, "values": _numbers(law)}


def _variants(entry: Entry, d: int) -> list[tuple[str, Dynamics]]:
    return list(specimens.variants(entry, d)) if d in specimens.dimensions(entry) else []


def _filled(entry: Entry, law: Dynamics, d: int) -> Dynamics:
    """A law whose letters are matrices, as the programs of a page have them."""
    usual = specimens.plain(entry, d) if d in specimens.dimensions(entry) else law
    letters = {
        each.name: np.eye(d)
        for each in dataclasses.fields(law)
        if getattr(law, each.name) is None and isinstance(getattr(usual, each.name), np.ndarray)
    }
    return dataclasses.replace(law, **letters) if letters else law


def _alike(law: Frozen, specimen: Frozen) -> bool:
    """Whether two laws, or two parts, differ in numbers alone."""
    with precision("float64"):
        mine, rest = eqx.partition(cast(law, "float64"), eqx.is_inexact_array)
        other, remaining = eqx.partition(cast(specimen, "float64"), eqx.is_inexact_array)
    shapes = [jax.tree.map(np.shape, each) for each in (mine, other)]
    return shapes[0] == shapes[1] and bool(eqx.tree_equal(rest, remaining))


def _numbers(law: Dynamics) -> dict[str, Any]:
    """The numbers of a law by their paths."""
    numbers = {}
    for path, home, name in specimens.values(law):
        value = getattr(home, name)
        if isinstance(value, float):
            numbers[path] = value
        elif isinstance(value, np.ndarray):
            numbers[path] = value.reshape(-1).tolist()
    return numbers


def _added(
    collection: dict[str, Any], law: Dynamics, d: int, solver: FixedStep | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The collection with a law that was given."""
    require(law.dimension in (None, d), "start", f"tokens with d = {law.dimension}", f"d = {d}")
    kept = shelf.Shelf()
    kept.programs = list(collection["programs"])
    entry = shelf.given(kept, law, d, solver)
    told = collection["schema"]
    more = {**told, "laws": [entry, *told["laws"]]}
    more["starts"] = _with_dimension(kept, told["starts"], d)
    if str(d) not in told["lenses"]["sphere"]:
        fresh = shelf.lenses(kept, (d,))
        more["lenses"] = {name: {**told["lenses"][name], **fresh[name]} for name in fresh}
    if solver and type(solver).__name__ not in [each["name"] for each in told["solvers"]]:
        more["solvers"] = [*told["solvers"], schema.solver(solver)]
    made = {**collection, "schema": more, "programs": kept.programs}
    return made, {"law": entry["name"], "d": d}


def _with_dimension(kept: shelf.Shelf, known: list[dict], d: int) -> list[dict]:
    """The starts of the collection, for one more dimension."""
    if any(str(d) in start["programs"] for start in known):
        return known
    fresh = {each["name"]: each["programs"] for each in shelf.starts(kept, (d,))}
    return [
        {**start, "programs": {**start["programs"], **fresh.get(start["name"], {})}}
        for start in known
    ]


def _placed(told: dict[str, Any], law: Dynamics, start: Start, seed: int) -> dict[str, Any]:
    """Where tokens begin: a start that the page can draw, or its tokens themselves."""
    n, d = start.shape
    name = type(start).__name__
    listed = next((each for each in told["starts"] if each["name"] == name), None)
    if listed and str(d) in listed["programs"] and _same(listed, start):
        live = {field["path"]: getattr(start, field["name"]) for field in listed["fields"]}
        return {"start": name, "n": n, "startValues": live}
    require(n <= MOST_GIVEN, "start", f"one that the page draws, beyond {MOST_GIVEN} tokens", name)
    tokens, weights = _drawn(law, start, seed)
    edited = {"n": n, "edited": tokens.reshape(-1).tolist()}
    uneven = not np.allclose(weights, 1 / n)
    return edited | ({"weights": weights.tolist()} if uneven else {})


def exact(law: Dynamics | None, start: Start, seed: int, state: dict[str, Any]) -> dict | None:
    """The tokens with which the page opens, to the last digit; its own draws of other seeds agree
    with the library's to single precision.
    """
    if "edited" in state or start.shape[0] > MOST_GIVEN:
        return None
    tokens, _ = _drawn(law or SelfAttention(), start, seed)
    keys = {key: state[key] for key in ("start", "startValues", "n", "d", "seed")}
    return keys | {"x": tokens.reshape(-1).tolist()}


def _drawn(law: Dynamics, start: Start, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and weights as `simulate` begins with them."""
    with precision("float64"):
        _, x, w, _ = prepare(law, start, seed, "float64")
        return np.asarray(x), np.asarray(w)


def _same(listed: dict[str, Any], start: Start) -> bool:
    """Whether a start differs from the one that the page draws in its live numbers alone."""
    live = {field["name"] for field in listed["fields"]} | {"n", "d"}
    usual = type(start)(**{each: getattr(start, each) for each in listed["counts"]})
    return all(
        np.array_equal(getattr(start, each.name), getattr(usual, each.name))
        for each in dataclasses.fields(start)
        if each.name not in live
    )

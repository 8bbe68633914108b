"""The programs of a page, and the members that they belong to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.catalogue import Entry, entries, slug
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.fast import Fast
from tokenflock.dynamics.kuramoto import Kuramoto
from tokenflock.dynamics.pure_attention import PureAttention
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.engines.page import Program, program, start_program
from tokenflock.errors import UserError
from tokenflock.laboratory import building, schema, specimens
from tokenflock.laboratory.specimens import SERVED
from tokenflock.observables.attention_matrix import AttentionMatrix
from tokenflock.observables.cluster_labels import ClusterLabels
from tokenflock.observables.energy import Energy
from tokenflock.observables.histogram import Histogram
from tokenflock.observables.mean_cosine import MeanCosine
from tokenflock.observables.observable import Observable
from tokenflock.observables.order_parameter import OrderParameter
from tokenflock.solvers.layer import Layer
from tokenflock.solvers.solver import FixedStep
from tokenflock.spaces import Sphere
from tokenflock.starts.start import Start

DELTAS = (0.1, 0.01, 0.001)  # thresholds of clusters that a page offers
BINS = 60
COUNT = 6  # tokens on which a law is tried
LARGEST = 60_000  # characters of a program that comes without being asked for
HOSTS: dict[str, Dynamics] = {"sphere": SelfAttention(), "flat": PureAttention()}
Report = Callable[[float], None]


class Shelf:
    """Programs in a row; each is told by its place."""

    def __init__(self) -> None:
        self.programs: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}

    def add(self, made: Program) -> int:
        """Keep a program and give its place; the same text is kept once."""
        if made.source not in self._places:
            self._places[made.source] = len(self.programs)
            self.programs.append({"source": made.source, "manifest": made.manifest})
        return self._places[made.source]

    def manifest(self, place: int) -> dict[str, Any]:
        """What a program says of itself."""
        return self.programs[place]["manifest"]


Laws = Mapping[int, Dynamics]  # one law for each dimension


def variant(shelf: Shelf, laws: Laws, solvers: Sequence[FixedStep] | None = None) -> dict:
    """A law as a page needs it: its programs by dimension and solver, and its controls."""
    programs: dict[str, dict[str, int]] = {}
    sights: dict[str, int] = {}
    parameters: dict[int, list] = {}
    for d, law in laws.items():
        made = stepped(shelf, law, d, solvers)
        programs[str(d)] = made
        sights[str(d)] = next(iter(made.values()))
        parameters[d] = shelf.manifest(sights[str(d)])["parameters"]
    law = next(iter(laws.values()))
    interaction = law.interaction
    attractive = isinstance(law, SelfAttention) and not law.repulsive
    return {
        "programs": programs,
        "sights": sights,
        "fields": [_served(law, field) for field in schema.fields(law, parameters)],
        "sphere": isinstance(law.space, Sphere),
        "bounded": interaction is not None and interaction.D is None and not law.noisy,
        "equiangular": attractive,
        "ordered": not law.exchangeable,
    }


def _served(law: Dynamics, field: dict[str, Any]) -> dict[str, Any]:
    """A field of a law that sums a series: its terms serve beta up to an end."""
    if not isinstance(law, Fast) or field["path"] != "base.beta":
        return field
    text = f"beta must be at most {SERVED:g} in a page, for its series has {law.order} terms"
    text += ", got {got}"
    return field | {"high": {"at": SERVED, "allowed": True, "text": text}}


def stepped(
    shelf: Shelf, law: Dynamics, d: int, solvers: Sequence[FixedStep] | None = None
) -> dict[str, int]:
    """The programs of a law by solver; the first also tells what only this law can tell."""
    places = {}
    for k, solver in enumerate(solvers or specimens.solvers(law)):
        made = program(law, solver, _sights(law) if k == 0 else (), d=d)
        if k == 0 or solvers is not None or len(made.source) <= LARGEST:
            places[type(solver).__name__] = shelf.add(made)
    return places


def _sights(law: Dynamics) -> list[Observable]:
    """What only this law can tell of its tokens: its energy and its attention."""
    seen: list[Observable] = []
    if law.interaction is not None and isinstance(law.space, Sphere):
        seen.append(Energy())
    return [*seen, AttentionMatrix()]


def catalogued(shelf: Shelf, entry: Entry) -> dict | None:
    """A law of the catalogue with all its variants; None where no program can be made of it."""
    if entry.load() is Block:
        return _built(shelf, entry)
    by_key: dict[str, dict[int, Dynamics]] = {}
    for d in specimens.dimensions(entry):
        for key, law in specimens.variants(entry, d):
            if _runs(law, d):
                by_key.setdefault(key, {})[d] = law
    made: dict[str, Any] = {}
    for key, laws in by_key.items():
        try:
            made[key] = variant(shelf, laws)
        except UserError:
            continue
    if not made:
        return None
    law = next(iter(next(iter(by_key.values())).values()))
    live = [field["name"] for field in next(iter(made.values()))["fields"]]
    return {
        **_told(law, entry.name, entry.summary),
        "choices": [schema.choice(each) for each in specimens.choices(entry)],
        "variants": made,
        "notes": schema.fixed(entry, law, live),
    }


def _built(shelf: Shelf, entry: Entry) -> dict[str, Any]:
    """The block, whose parts a page puts together."""
    return {
        **_told(Block(), entry.name, entry.summary),
        "choices": [schema.choice(each) for each in building.choices(entry)],
        "variants": {},
        "notes": [],
        "built": building.built(shelf.add),
    }


def _runs(law: Dynamics, d: int) -> bool:
    """Whether a law can be run in d dimensions at all."""
    x = np.eye(max(COUNT, d), d) + 0.1
    try:
        jax.eval_shape(lambda x: law.force(0.0, x, jnp.full(len(x), 1 / len(x))), x)
    except UserError:
        return False
    return True


def given(shelf: Shelf, law: Dynamics, d: int, solver: FixedStep | None) -> dict:
    """A law that was given as an object: one variant, under its own name."""
    text = " ".join((inspect.getdoc(type(law)) or "").partition("\n\n")[0].split())
    solvers = None if solver is None else [solver]
    return {
        **_told(law, f"{type(law).__name__} (given)", text),
        "choices": [],
        "variants": {"": variant(shelf, {d: law}, solvers)},
        "notes": [],
        "given": repr(law),
    }


def _told(law: Dynamics, name: str, summary: str) -> dict[str, Any]:
    """What a page says of a law."""
    return {
        "name": name,
        "slug": slug(name.removesuffix(" (given)")),
        "summary": summary,
        "equation": schema.equation(type(law)),
        "pairs": law.interacts and not isinstance(law, (Fast, Kuramoto)),
    }


def lenses(
    shelf: Shelf,
    dimensions: Sequence[int],
    hosts: Sequence[str] = tuple(HOSTS),
    deltas: Sequence[float] = DELTAS,
) -> dict[str, dict[str, dict[str, int]]]:
    """The observables that every law shares: on the sphere and in R^d, for each d and delta."""
    return {
        name: {
            str(d): {f"{delta:g}": _lens(shelf, HOSTS[name], delta, d) for delta in deltas}
            for d in dimensions
        }
        for name in hosts
    }


def _lens(shelf: Shelf, host: Dynamics, delta: float, d: int) -> int:
    seen = [Histogram(bins=BINS), OrderParameter(), MeanCosine()]
    return shelf.add(program(host, Layer(), [*seen, ClusterLabels(delta=delta)], d=d))


def starts(
    shelf: Shelf, dimensions: Sequence[int], names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The starts of the catalogue that a page can draw; those of the names where they are given."""
    made: dict[str, dict[str, Any]] = {}
    for d in dimensions:
        for entry, start in specimens.starts(d):
            if names is not None and entry.name not in names:
                continue
            try:
                drawn = start_program(start, d=d)
            except UserError:
                continue
            if len(drawn.source) > LARGEST:
                continue
            place = shelf.add(drawn)
            told = made.setdefault(entry.name, _start(entry, start, drawn, d))
            told["programs"][str(d)] = place
            told["least"][str(d)] = drawn.manifest["least"]
    return list(made.values())


def _start(entry: Entry, start: Start, drawn: Program, d: int) -> dict[str, Any]:
    counts = [option.name for option in entry.options if option.name in ("n", "d")]
    parameters = {d: drawn.manifest.get("parameters", [])}
    return {
        "name": entry.name,
        "slug": entry.slug,
        "summary": entry.summary,
        "counts": counts,
        "imports": [entry.name],
        "fields": schema.fields(start, parameters),
        "programs": {},
        "least": {},
    }


def catalogue(
    shelf: Shelf, report: Report | None = None, names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Every law of the catalogue that a page can run; those of the names where they are given."""
    laws = []
    listed = [entry for entry in entries("dynamics") if names is None or entry.name in names]
    for k, entry in enumerate(listed):
        if (law := catalogued(shelf, entry)) is not None:
            laws.append(law)
        if report is not None:
            report((k + 1) / len(listed))
    return laws

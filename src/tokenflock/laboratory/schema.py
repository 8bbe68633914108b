"""What the page's controls are built from: the members of the catalogue as plain values."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokenflock.catalogue import KINDS, Entry, entries, slug
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen
from tokenflock.laboratory.bounds import bounds
from tokenflock.laboratory.specimens import Alternatives, values
from tokenflock.solvers.solver import FixedStep

SLIDES = {"beta": {"low": 0.0, "high": 16.0, "log": False}}
_LETTERS = "QKV"


def fields(member: Frozen, parameters: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[dict]:
    """The numbers of a member that a program takes as arguments, as controls.

    `parameters` are those of its manifests, by dimension: an array has a shape for each.
    """
    homes = {path: (home, name) for path, home, name in values(member)}
    first = next(iter(parameters.values()), ())
    made = []
    for parameter in first:
        path = parameter["name"]
        if path not in homes:
            continue
        home, name = homes[path]
        made.append(_field(path, home, name, _by_dimension(path, parameters)))
    return made


def _by_dimension(path: str, parameters: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict:
    return {
        d: parameter
        for d, several in parameters.items()
        for parameter in several
        if parameter["name"] == path
    }


def _field(path: str, home: Frozen, name: str, each: Mapping[int, Mapping[str, Any]]) -> dict:
    """One control: its text, its default, and what it may be."""
    first = next(iter(each.values()))
    made: dict[str, Any] = {
        "name": name,
        "path": path,
        "home": type(home).__name__,
        "doc": _doc(type(home), name),
    }
    if first["shape"]:
        arrays = {str(d): parameter for d, parameter in each.items()}
        made |= {
            "kind": "array",
            "optional": name in _LETTERS and _usual(type(home), name) is None,
            "shapes": {d: parameter["shape"] for d, parameter in arrays.items()},
            "defaults": {d: parameter["default"] for d, parameter in arrays.items()},
        }
        return made
    usual = float(first["default"][0])
    made |= {"kind": "number", "default": usual, "optional": False}
    made |= _edges(home, name)
    return made | _slide(name, usual, made)


def _edges(home: Frozen, name: str) -> dict[str, Any]:
    """The bounds of a number; none where its class takes an array in its place."""
    value = getattr(home, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return {}
    return bounds(home, name)


def _slide(name: str, usual: float, made: Mapping[str, Any]) -> dict[str, Any]:
    """A natural range for a slider, where there is one."""
    if name in SLIDES:
        return {"slide": SLIDES[name]}
    low, high = made.get("low"), made.get("high")
    if low and high:
        return {"slide": {"low": low["at"], "high": high["at"], "log": False}}
    if low and low["at"] == 0 and usual > 0:
        return {"slide": {"low": usual / 50, "high": usual * 50, "log": True}}
    return {}


def _usual(cls: type, name: str) -> Any:
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    return field.default


def _doc(cls: type, name: str) -> str:
    """The text under a field, as the catalogue reads it from its file."""
    for kind in KINDS:
        for entry in entries(kind):
            if entry.name == cls.__name__:
                return next((option.doc for option in entry.options if option.name == name), "")
    return ""


def equation(cls: type) -> str:
    """The equation of a law: the first block of its docstring that is set apart.

    >>> from tokenflock.dynamics import Noisy
    >>> print(equation(Noisy).splitlines()[0][:12])
    dX_i = veloc
    """
    blocks = (inspect.getdoc(cls) or "").split("\n\n")
    apart = (block for block in blocks if block.startswith("    ") and ">>>" not in block)
    return inspect.cleandoc(next(apart, ""))


def choice(made: Alternatives) -> dict[str, Any]:
    """A choice as plain values."""
    return {
        "name": made.name,
        "kind": made.kind,
        "options": list(made.options),
        "default": made.default,
        "doc": made.doc,
        "written": dict(made.written),
        "slugs": {option: slug(option) for option in made.options} if made.kind == "law" else {},
    }


def solver(made: FixedStep) -> dict[str, Any]:
    """A solver as plain values."""
    cls = type(made)
    text = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())
    return {
        "name": cls.__name__,
        "slug": slug(cls.__name__),
        "summary": text,
        "h": float(made.h),
        "order": cls.order,
        "convention": made.convention,
    }


def homes() -> dict[str, str]:
    """In which folder each member of the catalogue is, for snippets of Python."""
    return {entry.name: kind for kind in KINDS for entry in entries(kind) if kind != "theory"}


def fixed(entry: Entry, law: Frozen, live: Sequence[str]) -> list[str]:
    """What a page cannot change of a law, in words: whole numbers shape its program."""
    stuck = []
    for option in entry.options:
        value = getattr(law, option.name)
        if isinstance(value, int) and not isinstance(value, bool) and option.name not in live:
            stuck.append(f"{option.name} = {value} ({option.doc}); flock.lab(law) writes others")
    return stuck


def matrices(d: int, seeds: int = 4) -> dict[str, list[list[float]]]:
    """Matrices that the library draws, by their law: what a typed matrix may begin from."""
    import jax

    drawn = {}
    for entry in entries("matrices"):
        if entry.name == "Identity":
            continue
        try:
            law = entry.load()()
            keys = [jax.random.key(seed) for seed in range(seeds)]
            drawn[entry.slug] = [np.asarray(law.draw(key, d)).reshape(-1).tolist() for key in keys]
        except (UserError, TypeError):
            continue
    return drawn

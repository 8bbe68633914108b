"""Which laws, starts and solvers a page holds.

A generated program has its numbers as arguments, so one serves every beta, matrix and n. What
changes the equation itself (a sign, a clock, the parts of a block) is a choice, and each
combination of choices is a program of its own: a variant.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenflock.catalogue import Entry, Option, entries
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.fast import Fast
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen
from tokenflock.solvers.euler import Euler
from tokenflock.solvers.euler_maruyama import EulerMaruyama
from tokenflock.solvers.layer import Layer
from tokenflock.solvers.rk4 import RK4
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts.start import Start

DIMENSIONS = (2, 3, 8)  # the last one for laws without matrices
SERVED = 9.0  # the beta up to which the series of fast sums has terms enough
COUNT = 6  # tokens for which an example of a law is made
_BASES = (SelfAttention, Unnormalised)


@dataclass(frozen=True)
class Alternatives:
    """Something that changes a law's equation: its name, what may be said, and what is usual."""

    name: str
    kind: str  # flag, word, law or part
    options: tuple[str, ...]
    default: str
    doc: str = ""
    written: Mapping[str, str] = field(default_factory=dict)  # an option as Python writes it


def choices(entry: Entry) -> tuple[Alternatives, ...]:
    """What changes the equation of a law.

    >>> from tokenflock.catalogue import find
    >>> [choice.name for choice in choices(find("dynamics", "unnormalised"))]
    ['clock', 'repulsive']
    """
    specimen = plain(entry, 2)
    offered = (_choice(option, getattr(specimen, option.name)) for option in entry.options)
    return tuple(choice for choice in offered if choice is not None)


def _choice(option: Option, value: Any) -> Alternatives | None:
    if isinstance(value, bool):
        usual = str(value).lower()
        return Alternatives(option.name, "flag", ("false", "true"), usual, option.doc)
    if isinstance(value, enum.Enum):
        words = tuple(str(member.value) for member in type(value))
        return Alternatives(option.name, "word", words, str(value.value), option.doc)
    if isinstance(value, _BASES):
        names = dict.fromkeys([type(value).__name__, *(base.__name__ for base in _BASES)])
        return Alternatives(option.name, "law", tuple(names), type(value).__name__, option.doc)
    return None


def plain(entry: Entry, d: int) -> Dynamics:
    """A law with its defaults, or its example where it has none."""
    cls = entry.load()
    if any(option.default is None for option in entry.options):
        return cls.example(COUNT, d)
    law = cls()
    if law.dimension not in (None, d):
        raise UserError(f"{entry.name} asks for d = {law.dimension}")
    letters = {
        option.name: np.eye(d)
        for option in entry.options
        if option.name in "QKV" and option.annotation.startswith("Array | float")
    }
    return dataclasses.replace(law, **letters) if letters else law


def variants(entry: Entry, d: int) -> Iterator[tuple[str, Dynamics]]:
    """Every combination of a law's choices that the law allows, by its key."""
    offered = choices(entry)
    law = plain(entry, d)
    for words in itertools.product(*(choice.options for choice in offered)):
        try:
            chosen = {choice.name: _said(choice, word) for choice, word in zip(offered, words)}
            if isinstance(law, Fast):
                chosen["order"] = Fast(dataclasses.replace(chosen["base"], beta=SERVED)).order
            yield ",".join(words), dataclasses.replace(law, **chosen) if chosen else law
        except UserError:
            continue


def _said(choice: Alternatives, word: str) -> Any:
    """The value of a field that a word names."""
    if choice.kind == "flag":
        return word == "true"
    if choice.kind == "law":
        return next(base for base in _BASES if base.__name__ == word)()
    return word


def dimensions(entry: Entry) -> tuple[int, ...]:
    """The d for which a page holds a law."""
    fitting = [d for d in DIMENSIONS if _fits(entry, d)]
    return tuple(d for d in fitting if d <= 3 or not _matrices(plain(entry, d)))


def _matrices(law: Frozen) -> bool:
    """Whether a law holds arrays: their programs grow with d."""
    return any(isinstance(getattr(home, name), np.ndarray) for _, home, name in values(law))


def _fits(entry: Entry, d: int) -> bool:
    try:
        return plain(entry, d).dimension in (None, d)
    except UserError:
        return False


def solvers(law: Dynamics) -> tuple[FixedStep, ...]:
    """Return the solvers of fixed step that suit a law, the page's default first: the layer map,
    or the flow where the force grows with beta, for its layers are far from the flow.
    """
    if isinstance(law, Block):
        return (Layer(),)
    flow = EulerMaruyama() if law.noisy else RK4() if law.smooth else Euler()
    return (Layer(), flow) if law.bounded else (flow, Layer())


def starts(d: int) -> Iterator[tuple[Entry, Start]]:
    """The starts of the catalogue that can be drawn in d dimensions, whatever n is."""
    for entry in entries("starts"):
        options = {option.name for option in entry.options}
        if any(option.default is None for option in entry.options):
            continue
        try:
            yield entry, entry.load()(**({"d": d} if "d" in options else {}))
        except UserError:
            continue


def values(member: Frozen, path: str = "") -> Iterator[tuple[str, Frozen, str]]:
    """Every field of a member and of the members in it: its path, whose it is, its name."""
    for each in dataclasses.fields(member):
        value, here = getattr(member, each.name), f"{path}{each.name}"
        if isinstance(value, Frozen):
            yield from values(value, f"{here}.")
        else:
            yield here, member, each.name

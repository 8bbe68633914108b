"""Members of the catalogue from the tables of a spec, with every mistake and its line."""

from __future__ import annotations

import dataclasses
import inspect
from difflib import get_close_matches
from typing import Any

from tokenflock import catalogue
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen, kinds_of, settle
from tokenflock.sweeps.lines import Path, line_of

_ALIASES = {"step": "h"}
MOST = 1000  # mistakes that are worded; of more only their number is told


class Mistakes:
    """What is wrong with a text: (line, words) of each."""

    def __init__(self, lines: dict[Path, int]) -> None:
        self.lines = lines
        self.told: list[tuple[int, str]] = []
        self.more = 0

    def add(self, path: Path, words: object) -> None:
        """Something is wrong at a path."""
        if len(self.told) < MOST:
            self.told.append((line_of(self.lines, path), str(words)))
        else:
            self.more += 1

    def unknown(self, path: Path, known: list[str], what: str) -> None:
        """The last key of a path is not known."""
        if len(self.told) >= MOST:  # looking for a near one takes time
            self.more += 1
            return
        near = get_close_matches(path[-1], known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        self.add(path, f"{what} has no option {path[-1]!r:.80}; {remedy}")


def member(kind: str, plain: Any, path: Path, mistakes: Mistakes) -> Any:
    """The member of a kind that a table (or a name alone) tells, or None where it is wrong."""
    table = {"name": plain} if isinstance(plain, str) else plain
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        example = {"dynamics": "self-attention", "starts": "uniform", "solvers": "layer"}
        name = example.get(kind, catalogue.entries(kind)[0].slug)
        mistakes.add(path, f'{path[0]} must be a table with a name, e.g. name = "{name}"')
        return None
    try:
        cls = catalogue.find(kind, table["name"]).load()
    except UserError as error:
        mistakes.add((*path, "name"), error)
        return None
    return _built(cls, {key: v for key, v in table.items() if key != "name"}, path, mistakes)


def _built(cls: type[Frozen], given: dict[str, Any], path: Path, mistakes: Mistakes) -> Any:
    """An object of a class, or None where a value of it is wrong."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    kinds, values, before = kinds_of(cls), {}, len(mistakes.told)
    for key, plain in given.items():
        name = key if key in fields else _ALIASES.get(key, key)
        here = (*path, key)
        if name not in fields:
            mistakes.unknown(here, list(fields), catalogue.slug(cls.__name__))
            continue
        value = _value(kinds.get(name, ()), plain, here, mistakes)
        try:
            kind = kinds.get(name)
            values[name] = value if kind is None or value is None else settle(key, kind, value)
        except UserError as error:
            mistakes.add(here, error)
    names = {key if key in fields else _ALIASES.get(key, key) for key in given}
    needed = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    for name in set(needed) - names:
        mistakes.add(path, f"{catalogue.slug(cls.__name__)} needs {name}")
    lacking = set(needed) - set(values)
    built = None
    if lacking or any(value is None for value in values.values()):
        return None
    try:
        built = cls(**values)  # tells what is out of range, whatever else is wrong
    except UserError as error:
        told = next((key for key in given if key in str(error).split(" must", 1)[0]), None)
        mistakes.add(path if told is None else (*path, told), error)
    return built if len(mistakes.told) == before else None


def _value(kinds: Any, plain: Any, path: Path, mistakes: Mistakes) -> Any:
    """The value of a field: as it is, or an object where the field holds one."""
    inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Frozen)]
    if not inner:
        return plain
    base = inner[0]
    if base.__name__ in catalogue.PARTS:
        return _part(base.__name__, plain, path, mistakes)
    if isinstance(plain, dict) and "name" not in plain and not inspect.isabstract(base):
        return _built(base, plain, path, mistakes)
    kind = next((kind for kind in catalogue.BASES if issubclass(base, catalogue.base(kind))), None)
    if kind is None:
        return plain
    return member(kind, plain, path, mistakes)


def _part(family: str, plain: Any, path: Path, mistakes: Mistakes) -> Any:
    """A part of a block: by its name, by the value of its first option, or as a table."""
    table = dict(plain) if isinstance(plain, dict) else {"name": plain}
    name = table.pop("name", None)
    if name is None or isinstance(name, (list, dict, bool)):
        mistakes.add(path, f"{path[-1]} must be a name, or a table with one")
        return None
    try:
        entry, bare = catalogue.part(family, str(name))
    except UserError as error:
        mistakes.add(path, f"{path[-1]} must be {error}")
        return None
    first = {} if bare is None else {entry.options[0].name: name}
    return _built(entry.load(), first | table, path, mistakes)


def random_matrices(plain: Any, path: Path, mistakes: Mistakes) -> Any:
    """Random matrices from their table, e.g. kernel = "ginibre", value = "wishart"."""
    from tokenflock.matrices._random import RandomMatrices

    if not isinstance(plain, dict):
        mistakes.add(path, f'{path[0]} must be a table, e.g. kernel = "ginibre"')
        return None
    return _built(RandomMatrices, plain, path, mistakes)

"""The reference: every public name of every public folder, from the objects themselves."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

from docstrings import escaped, markdown

from tokenflock.catalogue import KINDS, Entry, entries, summary

HEADS = {  # what a folder is, in one line
    "tokenflock": "Verbs: what you do with a law. `import tokenflock as flock`.",
    "dynamics": "Laws of motion.",
    "parts": "Parts of a `Block`.",
    "starts": "Where tokens begin.",
    "solvers": "How time passes.",
    "observables": "What is measured.",
    "events": "When a run ends.",
    "matrices": "Random Q, K, V.",
    "spaces": "Where tokens live.",
    "theory": "What is proved, in closed form.",
    "meanfield": "Measures in place of tokens.",
    "sweeps": "Large grids that survive.",
    "steering": "Transformers that carry clouds to targets.",
    "probing": "Real models in the shape of a simulation.",
    "gpt": "A small GPT, from bigram to full.",
    "plots": "Pictures and films.",
    "reproduction": "Papers with verdicts: claims and their intervals.",
    "errors": "What is raised.",
}
FOLDERS = tuple(HEADS)
EXTRA = {  # folders without a list of their own: what a reader of these pages needs of them
    "reproduction": {"Claim": "reproduction.claim", "Report": "reproduction.outcome"},
    "errors": {"UserError": "errors", "SimulationError": "errors"},
}


def module(folder: str) -> ModuleType:
    """The module of a folder."""
    return importlib.import_module(
        "tokenflock" if folder == "tokenflock" else f"tokenflock.{folder}"
    )


def public(folder: str) -> dict[str, Any]:
    """Every public name of a folder, and what it is."""
    if folder in EXTRA:
        homes = EXTRA[folder]
        return {
            name: getattr(importlib.import_module(f"tokenflock.{homes[name]}"), name)
            for name in sorted(homes)
        }
    home = module(folder)
    return {name: getattr(home, name) for name in sorted(home.__all__, key=str.lower)}


def pages() -> dict[str, str]:
    """All pages of the reference by their names."""
    return {f"reference/{folder}.md": page(folder) for folder in FOLDERS}


def page(folder: str) -> str:
    """One folder: a table of its names, then each of them."""
    found = public(folder)
    rooms = {name: value for name, value in found.items() if isinstance(value, ModuleType)}
    things = {name: value for name, value in found.items() if name not in rooms}
    where = "tokenflock" if folder == "tokenflock" else f"tokenflock.{folder}"
    parts = [f"# {where}", HEADS[folder]]
    if rooms:
        parts.append("Folders: " + ", ".join(_room(folder, name) for name in rooms) + ".")
    rows = [
        f"| [`{name}`](#{anchor(folder, name)}) | {first(value)} |"
        for name, value in things.items()
    ]
    parts.append("\n".join(["| name | |", "|---|---|", *rows]))
    parts += [thing(folder, name, value) for name, value in things.items()]
    return "\n\n".join(parts) + "\n"


def _room(folder: str, name: str) -> str:
    """A link to the page of a folder; a file that is offered whole is told in place."""
    if folder == "tokenflock" and name in FOLDERS:
        return f"[`{name}`]({name}.md)"
    if folder == "tokenflock":
        return f"[`{name}`](../verdicts/index.md)" if name == "papers" else f"`{name}`"
    return f"`{name}`"


def anchor(folder: str, name: str) -> str:
    """The label of a name on its page; case is told, since labels have none.

    >>> anchor("sweeps", "Status"), anchor("sweeps", "status")
    ('sweeps-status', 'sweeps-status-verb')
    """
    return f"{folder}-{name.lower().replace('_', '-')}" + ("-verb" if name.islower() else "")


def first(value: Any) -> str:
    """The first sentence or paragraph of what something says of itself."""
    return escaped(summary(own_doc(value)))


def own_doc(value: Any) -> str:
    """The text of a thing; none where it is only that of the type it is an instance of."""
    doc = inspect.getdoc(value) or ""
    return "" if doc == (inspect.getdoc(type(value)) or "-") and not inspect.isclass(value) else doc


def thing(folder: str, name: str, value: Any) -> str:
    """One public name: how it is called, what it says, its options and methods."""
    parts = [f"({anchor(folder, name)})=\n## {escaped(name)}"]
    if inspect.isclass(value):
        parts += _class(folder, name, value)
    elif callable(value):
        parts += [f"```python\n{signature(name, value)}\n```", markdown(own_doc(value))]
    else:
        parts += [f"`{name} = {value!r:.200}`", markdown(own_doc(value))]
    return "\n\n".join(part for part in parts if part)


def _class(folder: str, name: str, cls: type) -> list[str]:
    if issubclass(cls, enum.Enum):
        choices = ", ".join(f"`{member.name}`" for member in cls)
        return [markdown(own_doc(cls)), f"One of {choices}."]
    entry = next((each for each in members(folder) if each.name == name), None)
    text = "" if _generated_doc(cls) else markdown(own_doc(cls))
    parts = [f"```python\n{signature(name, cls)}\n```", text]
    if entry is not None:
        parts += [options(entry), command(entry)]
    else:
        parts.append(_attributes(cls))
    return [*parts, _methods(cls)]


def _generated_doc(cls: type) -> bool:
    """Whether the docstring of a dataclass only repeats its signature."""
    return dataclasses.is_dataclass(cls) and (cls.__doc__ or "").startswith(f"{cls.__name__}(")


def members(folder: str) -> tuple[Entry, ...]:
    """The members of the catalogue in a folder."""
    return entries(folder) if folder in KINDS else ()


def options(entry: Entry) -> str:
    """The fields of a member as a table."""
    rows = [
        f"| `{each.name}` | {_default(each.default)} | {escaped(each.doc)} |"
        for each in entry.options
    ]
    return "\n".join(["| field | default | |", "|---|---|---|", *rows]) if rows else ""


def _default(text: str | None) -> str:
    return "must be given" if text is None else f"`{text.replace('|', '/')}`"


def command(entry: Entry) -> str:
    """How a member is named on a command line."""
    return f"On the command line: `{entry.slug}` (`tokenflock list {entry.kind}`)."


def _attributes(cls: type) -> str:
    if not dataclasses.is_dataclass(cls):
        return ""
    names = [f"`{each.name}`" for each in dataclasses.fields(cls) if not each.name.startswith("_")]
    return f"Fields: {', '.join(names)}." if names else ""


def _methods(cls: type) -> str:
    """Public methods and properties that a class defines itself, with their first lines."""
    rows = []
    for name, value in vars(cls).items():
        kinds = (property, classmethod, staticmethod)
        if name.startswith("_") or not (inspect.isfunction(value) or isinstance(value, kinds)):
            continue
        text = summary(inspect.getdoc(getattr(cls, name)) or _inherited(cls, name))
        if text:
            rows.append(f"- `{name}`: {escaped(text)}")
    return "\n".join(rows)


def _inherited(cls: type, name: str) -> str:
    for base in cls.__mro__[1:]:
        if name in vars(base):
            return inspect.getdoc(vars(base)[name]) or ""
    return ""


def signature(name: str, value: Any) -> str:
    """How it is called, one argument a line where it is long."""
    try:
        told = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    words, starred = [], False
    for parameter in told.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        words.append(_parameter(parameter))
    back = "" if inspect.isclass(value) else _annotation(told.return_annotation)
    end = f") -> {back}" if back else ")"
    line = f"{name}({', '.join(words)}{end}"
    if len(line) <= 88:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), end])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = _annotation(parameter.annotation)
    text = f"{stars}{parameter.name}" + (f": {kind}" if kind else "")
    if parameter.default is parameter.empty:
        return text
    return (
        f"{text} = {_value(parameter.default)}" if kind else f"{text}={_value(parameter.default)}"
    )


def _value(default: Any) -> str:
    if inspect.isclass(default) or inspect.isfunction(default):
        return default.__name__
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    return "..." if "<" in repr(default) else repr(default)


def _annotation(told: Any) -> str:
    """An annotation as it is written, without the names of modules."""
    if told is inspect.Parameter.empty:
        return ""
    text = told if isinstance(told, str) else inspect.formatannotation(told)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def undocumented(made: dict[str, str]) -> list[str]:
    """Public names without a place in the reference."""
    return [
        f"{folder}.{name}"
        for folder in FOLDERS
        for name, value in public(folder).items()
        if not isinstance(value, ModuleType)
        and f"({anchor(folder, name)})=" not in made[f"reference/{folder}.md"]
    ]

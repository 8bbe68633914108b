"""The tables of the catalogue, read from the code."""

from __future__ import annotations

from docstrings import escaped
from reference import HEADS, anchor

from tokenflock.catalogue import KINDS, PARTS, Entry, entries, family

HEAD = """# The catalogue

Each member is one file with its equation and its source. It is importable, listed by `tokenflock
list`, has its options on the command line and keeps the laws of its kind in the tests because the
file exists. This page is read from the files when it is built: {count} members.
"""


def page() -> str:
    """One table for each kind."""
    parts = [HEAD.format(count=sum(len(entries(kind)) for kind in KINDS))]
    for kind in KINDS:
        found = entries(kind)
        parts.append(f"## {kind.capitalize()} ({len(found)})\n\n{HEADS[kind]}")
        parts.append(_parts() if kind == "parts" else table(found))
    return "\n\n".join(parts) + "\n"


def table(found: tuple[Entry, ...]) -> str:
    """A row for each member: its name, what it is, its options."""
    rows = [f"| {_link(entry)} | {escaped(entry.summary)} | {_options(entry)} |" for entry in found]
    return "\n".join(["| name | what it is | options |", "|---|---|---|", *rows])


def _link(entry: Entry) -> str:
    return f"[`{entry.name}`](reference/{entry.kind}.md#{anchor(entry.kind, entry.name)})"


def _options(entry: Entry) -> str:
    return ", ".join(f"`{option.name}`" for option in entry.options) or "none"


def _parts() -> str:
    """The parts of a block by family, under the short names that one types."""
    sections = []
    for of in PARTS:
        rows = [
            f"| `{short}` | {_link(entry)} | {escaped(entry.summary)} | {_options(entry)} |"
            for short, entry in family(of).items()
        ]
        head = ["| short | name | what it is | options |", "|---|---|---|---|"]
        sections.append(f"### {of}\n\n" + "\n".join([*head, *rows]))
    return "\n\n".join(sections)

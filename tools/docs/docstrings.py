"""Docstrings as MyST: equations and examples as blocks, arguments as a list, the rest as text."""

from __future__ import annotations

import inspect
import re
import textwrap

MARKS = re.compile(r"([\\*_<>\[\]$|#~^{}])")
MATHS = re.compile(r"(\$[^$\n]+\$)")
ARGUMENT = re.compile(r"^  (?P<name>\*{0,2}[\w, ]+): (?P<text>.*)$")
SECTIONS = {"Args:": "Arguments", "Raises:": "Raises"}


def escaped(text: str) -> str:
    """Prose with its marks made harmless; words in backticks stay code.

    >>> escaped("e^{b} of `x_i`")
    'e\\\\^\\\\{b\\\\} of `x_i`'
    """
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(part if k % 2 else MARKS.sub(r"\\\1", part) for k, part in enumerate(parts))


def mathematical(text: str) -> str:
    """Prose with `$…$` formulas: they stay, the rest is made harmless. Bars in formulas would end
    the cell of a table, and are written out.

    >>> mathematical("a_1 of $|x_1|$")
    'a\\\\_1 of $\\\\vert x_1\\\\vert $'
    """
    parts = MATHS.split(text)
    return "".join(_barless(part) if k % 2 else escaped(part) for k, part in enumerate(parts))


def _barless(formula: str) -> str:
    return formula.replace(r"\|", r"\Vert ").replace("|", r"\vert ")


def markdown(doc: str | None) -> str:
    """A docstring as MyST."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(doc or ""))
    return "\n\n".join(_block(block) for block in _joined(blocks) if block.strip())


def _joined(blocks: list[str]) -> list[str]:
    """Indented blocks that follow each other are one."""
    made: list[str] = []
    for block in blocks:
        if made and _indented(block) and _indented(made[-1]):
            made[-1] += "\n\n" + block
        else:
            made.append(block)
    return made


def _indented(block: str) -> bool:
    return all(line.startswith("    ") for line in block.splitlines() if line.strip())


def _block(block: str) -> str:
    first, *rest = block.splitlines()
    if first.startswith(">>>"):
        block = re.sub(r"  # doctest: .*", "", block)
        return f"```pycon\n{block}\n```"
    if first in SECTIONS:
        return _arguments(SECTIONS[first], rest)
    if _indented(block):
        return f"```text\n{textwrap.dedent(block)}\n```"
    lead = next((k for k, line in enumerate(block.splitlines()) if line.startswith("    ")), None)
    if lead:
        lines = block.splitlines()
        return _block("\n".join(lines[:lead])) + "\n\n" + _block("\n".join(lines[lead:]))
    return mathematical(block)


def _arguments(title: str, lines: list[str]) -> str:
    made: list[str] = []
    for line in lines:
        found = ARGUMENT.match(line)
        if found:
            made.append(f"- `{found['name']}`: {mathematical(found['text'])}")
        elif made:
            made[-1] += " " + mathematical(line.strip())
        else:
            made.append(f"- {mathematical(line.strip())}")
    return f"**{title}**\n\n" + "\n".join(made)

"""In which line of a TOML file a key stands, which its reader does not tell; and, before it is
read, in which line a key has more parts than readers bear.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

MOST_PARTS = 16  # of a key with dots: the work of a reader grows with their square
MOST_KEYS = 10_000  # whose lines are told
Path = tuple[Any, ...]  # keys, and numbers of entries of lists: ("observe", 0, "delta")
_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]\]?")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]')

_WORD = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?)"""
_DOTTED = re.compile(  # texts and comments, which may hold dots and are no keys; then a key
    r'''"""(?:[^"\\]|\\.|"(?!""))*+|'{3}(?:[^']|'(?!''))*+|#[^\n]*+|'''
    rf"(?P<key>{_WORD}(?:[ \t]*\.[ \t]*{_WORD})*+)",
    re.DOTALL,
)


def endless_key(text: str) -> tuple[int, int] | None:
    """(line, parts) of the first key of too many parts; None where there is none.

    >>> endless_key("a.b = 'a.b'\\nc" + ".c" * 20 + " = 1")
    (2, 21)
    """
    for found in _DOTTED.finditer(text):
        key = found["key"] or ""
        if key.count(".") >= MOST_PARTS and len(parts := re.findall(_WORD, key)) > MOST_PARTS:
            return text.count("\n", 0, found.start()) + 1, len(parts)
    return None


def key_lines(text: str) -> dict[Path, int]:
    """The line of every table and key of a TOML text.

    >>> lines = key_lines("seed = 3\\n[[observe]]\\nname = 'energy'\\n[over]\\nbeta = [1,\\n2]")
    >>> lines[("seed",)], lines[("observe", 0, "name")], lines[("over", "beta")]
    (1, 3, 5)
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    still: str | int = 0  # the quotes of a text that goes on, or how many brackets are open
    for number, line in enumerate(text.splitlines(), 1):
        if len(lines) > MOST_KEYS:
            break
        if still:
            still = _open(line, still)
        elif heading := _TABLE.match(line):
            table = _place(_parts(heading[2]), counts)
            if heading[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            path = table
            for part in _parts(key[1]):
                path = (*path, part)
                lines.setdefault(path, number)
            still = _open(line[key.end() :], 0)
    return lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a path, or of what it lies in; the first where that is not told either."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _parts(key: str) -> list[str]:
    """A dotted key in parts: `a."b c"` is a, b c."""
    return list(_chain(tomllib.loads(f"{key} = 0")))


def _chain(plain: dict[str, Any]) -> tuple[str, ...]:
    ((key, inside),) = plain.items()
    return (key, *(_chain(inside) if isinstance(inside, dict) else ()))


def _place(parts: list[str], counts: dict[Path, int]) -> Path:
    """The path of a table, in the last entry of each list of tables that it names."""
    path: Path = ()
    for k, part in enumerate(parts):
        path = (*path, part)
        if path in counts and k < len(parts) - 1:
            path = (*path, counts[path])
    return path


def _open(line: str, still: str | int) -> str | int:
    """What is still open after a line."""
    at = 0
    if isinstance(still, str):
        end = line.find(still)
        if end < 0:
            return still
        at, still = end + 3, 0
    for token in _TOKEN.finditer(line, at):
        word = token[0]
        if word in ('"""', "'''"):
            rest = line.find(word, token.end())
            return word if rest < 0 else _open(line[rest + 3 :], still)
        if word in "[{":
            still += 1
        elif word in "]}":
            still -= 1
        elif word.startswith("#"):
            break
    return max(still, 0)

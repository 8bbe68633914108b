"""Claims that say the same of other numbers, gathered: one sentence, and a small table of cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokenflock.reproduction.claim import Claim

_PART = re.compile(
    r"(?P<number>(?<![\w.^(])[−-]?\d+(?:[.,]\d+)*(?:e[+\-−]?\d+)?(?![\w.^²³]))"
    r"|(?P<word>[^\W\d_]+(?:-[^\W\d_]+)*)"
    r"|(?P<other>\s+|.)",
    re.DOTALL,
)
_MOST = 3  # columns of cases
_SHARE = 0.3  # of the words of a sentence that may differ
_SMALL = frozenset(
    {"a", "an", "and", "at", "have", "in", "is", "of", "on", "or", "the", "than", "to"}
)
_VALUE = re.compile(r"(?:^|[=≈<>≤≥] |\$)$")  # what stands before a value in a formula

Part = tuple[str, str]  # a text, and whether it is a number, a word or something other


@dataclass(frozen=True)
class Column:
    """What differs: its name, and its value for each claim."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class ClaimGroup:
    """One claim, or several that differ in a few words; the sentence is theirs in common."""

    claims: tuple[Claim, ...]
    statement: str
    columns: tuple[Column, ...] = ()


def grouped(claims: Sequence[Claim]) -> list[ClaimGroup]:
    """Claims whose sentences differ in a few numbers or names, together; each in its first place.

    >>> def say(beta): return Claim(f"{beta}", f"at $β = {beta}$ tokens meet", "", 0.0, (0.0, 1.0))
    >>> [one] = grouped([say(1), say(4)])
    >>> one.statement, one.columns
    ('at $β = 1, 4$ tokens meet', (Column(name='$β$', values=('1', '4')),))
    """
    alike: list[list[tuple[Claim, list[Part]]]] = []
    for claim in claims:
        parts = _parts(claim.statement)
        home = next((group for group in alike if _fits([p for _, p in group], parts)), None)
        if home is None:
            alike.append([(claim, parts)])
        else:
            home.append((claim, parts))
    return [_group([claim for claim, _ in group], [parts for _, parts in group]) for group in alike]


def _parts(statement: str) -> list[Part]:
    return [(found[0], str(found.lastgroup)) for found in _PART.finditer(statement)]


def _fits(known: Sequence[Sequence[Part]], parts: Sequence[Part]) -> bool:
    """Whether a sentence is like the others but for a few values, or one name."""
    if [kind for _, kind in parts] != [kind for _, kind in known[0]]:
        return False
    rows = [*known, parts]
    places = _differing(rows)
    if not places or not all(_is_value(parts, place) for place in places):
        return False
    columns = {_values(rows, place): parts[place][1] for place in places}
    names = sum(kind == "word" for kind in columns.values())
    meant = sum(kind != "other" for _, kind in parts)
    return len(columns) <= _MOST and names <= 1 and len(places) <= _SHARE * meant


def _is_value(parts: Sequence[Part], place: int) -> bool:
    """Whether others can stand beside it: a name or a number of prose, a value in a formula."""
    kind = parts[place][1]
    before = "".join(part for part, _ in parts[:place])
    after = "".join(part for part, _ in parts[place + 1 :])
    if kind == "other":
        return False
    if before.count("$") % 2:
        return _VALUE.search(before) is not None and not after.startswith(("/", "(", "·"))
    return not before.endswith(("'", "× ", "-")) and not after.startswith((" ×", "'", "-"))


def _differing(rows: Sequence[Sequence[Part]]) -> list[int]:
    return [place for place, parts in enumerate(zip(*rows)) if len(set(parts)) > 1]


def _values(rows: Sequence[Sequence[Part]], place: int) -> tuple[str, ...]:
    return tuple(parts[place][0] for parts in rows)


def _group(claims: list[Claim], rows: list[list[Part]]) -> ClaimGroup:
    if len(claims) == 1:
        return ClaimGroup(tuple(claims), claims[0].statement)
    shown = [text for text, _ in rows[0]]
    columns: dict[tuple[str, ...], Column] = {}
    for place in _differing(rows):
        values = _values(rows, place)
        columns.setdefault(values, Column(_name(rows[0], place), values))
        prose = rows[0][place][1] == "word" and "".join(shown[:place]).count("$") % 2 == 0
        shown[place] = _listed(values, " or " if prose else ", ")
    return ClaimGroup(tuple(claims), "".join(shown), tuple(columns.values()))


def _listed(values: Sequence[str], last: str) -> str:
    """Values in a sentence: all where they are few, else the first and the last.

    >>> _listed(["SA", "USA", "Sinkhorn", "SA"], " or "), _listed("12345", ", ")
    ('SA, USA or Sinkhorn', '1, …, 5')
    """
    *others, end = dict.fromkeys(values)
    if len(others) > 3:
        return f"{others[0]}, …, {end}"
    return ", ".join(others) + last + end


def _name(parts: Sequence[Part], place: int) -> str:
    """What a value is called: the letter that it is the value of, or what is counted."""
    before = "".join(text for text, _ in parts[:place])
    formula = before.rpartition("$")[2]
    if before.count("$") % 2 and formula.strip():
        last = re.split(r"[<>≤≥,;] ?", formula)[-1]
        return f"${re.split(r' [=≈] ', last)[0].strip()}$"
    if parts[place][1] == "word":
        return "case"
    words = [text for text, kind in parts[place + 1 : place + 7] if kind == "word"]
    many = [word for word in words if word.endswith("s") and word not in _SMALL]
    if many:
        return many[0]
    said = [text for text, kind in parts[:place] if kind == "word" and text not in _SMALL]
    return said[-1] if said else "case"

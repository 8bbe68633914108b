"""The verdicts: every claim of every paper, what was measured, and the interval it must lie in.

The numbers that claims read are kept at quick scale in `tests/data/items`, so claims are judged
anew by today's code each time the pages are built, and no file of verdicts can go stale.
`python tools/docs --claims report` takes the claims.json of reports (at paper scale, say) instead,
where they have an item.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docstrings import MATHS, escaped
from tests.papers.numbers import stored

from tokenflock.reproduction.claim import Claim
from tokenflock.reproduction.item import Item, Paper, papers
from tokenflock.reproduction.mathematics import mathml, unicode

TEXTS = ("statement", "source", "note", "erratum")
MODEL = "perspective/fig1"  # judged here for a small model that clusters, which the tests make
HEAD = """# Verdicts

Every paper is a folder of code, every figure and statement a file in it, and every sentence that
can be checked is a *claim*: the number that was measured, and the interval in which it must lie. A
claim that leaves its interval turns red, here and in the tests. {told}

| paper | items | claims | hold | fail | print corrected |
|---|---|---|---|---|---|
{rows}

Run them yourself: `tokenflock reproduce perspective`, at the published sizes with `--scale paper`.
Where print departs from what is right is collected in [errata](../errata.md).

```{{toctree}}
:hidden:
:maxdepth: 1

{pages}
```
"""
KEPT = (
    "The numbers below are those of the quick scale (minutes on two cores), kept with the tests and"
    " judged by today's code when this page was built."
)


@dataclass(frozen=True)
class Judged:
    """An item with its claims as plain values."""

    item: Item
    claims: list[dict[str, Any]]


def shown(text: str) -> str:
    """Text that is marked as in `tokenflock.reproduction.mathematics`, for a cell of a table:
    formulas as MathML, the rest made harmless.

    >>> shown("a_1 of $x$")
    'a\\\\_1 of <math><mi>x</mi></math>'
    """
    parts = MATHS.split(text)
    return "".join(
        mathml(part).replace("|", "&#124;") if k % 2 else escaped(part)
        for k, part in enumerate(parts)
    )


def judged(item: Item, reports: Path | None) -> Judged:
    """The claims of one item: of a report where there is one, else of the numbers that are kept."""
    if reports is not None:
        for note in reports.rglob(f"data/{item.name}.json"):
            return Judged(item, json.loads(note.read_text(encoding="utf-8"))["claims"])
    claims = item.load().claims(stored(item.name))
    return Judged(item, [values(claim) for claim in claims])


def values(claim: Claim) -> dict[str, Any]:
    """A claim as plain values, its texts with their formulas as they are written."""
    return claim.as_json() | {name: getattr(claim, name) for name in TEXTS}


def pages(reports: Path | None = None) -> dict[str, str]:
    """The table of all papers and a page for each."""
    every = {paper: [judged(item, reports) for item in paper.items] for paper in papers()}
    made = {f"verdicts/{paper.name}.md": page(paper, found) for paper, found in every.items()}
    told = KEPT if reports is None else "The numbers are those of the reports that were given."
    rows = "\n".join(_row(paper, found) for paper, found in every.items())
    names = "\n".join(paper.name for paper in every)
    total = Counter(
        claim["verdict"] for found in every.values() for each in found for claim in each.claims
    )
    told += f" {total.total()} claims: {total['holds']} hold, {total['fails']} fail."
    return made | {"verdicts/index.md": HEAD.format(told=told, rows=rows, pages=names)}


def _row(paper: Paper, found: list[Judged]) -> str:
    claims = [claim for each in found for claim in each.claims]
    count = Counter(claim["verdict"] for claim in claims)
    errata = sum(bool(claim["erratum"]) for claim in claims)
    name = f"[{shown(paper.title)}]({paper.name}.md)"
    cells = [name, len(found), len(claims), count["holds"], count["fails"], errata]
    return "| " + " | ".join(map(str, cells)) + " |"


def page(paper: Paper, found: list[Judged]) -> str:
    """One paper: its items, their claims."""
    parts = [f"# {shown(paper.title)}", shown(paper.reference)]
    parts.append(f"`tokenflock reproduce {paper.name}` runs it and draws its figures.")
    return "\n\n".join([*parts, *(_item(each) for each in found)]) + "\n"


def _item(each: Judged) -> str:
    item = each.item
    head = f"## {escaped(unicode(item.title))}\n\n{shown(item.source)}. `{item.name}`."
    how = shown(" ".join(item.how.partition("\n\n")[0].split()))
    note = (
        "\n\nThese claims were judged for a small model that gathers its tokens, made by the tests;"
        " the published figure needs its trained model."
        if item.name == MODEL
        else ""
    )
    rows = "\n".join(_claim(claim) for claim in each.claims)
    table = f"| claim | source | measured | must lie in | |\n|---|---|---|---|---|\n{rows}"
    return f"{head}\n\n{how}{note}\n\n```{{container}} verdicts\n{table}\n```"


def _claim(claim: dict[str, Any]) -> str:
    said = shown(claim["statement"])
    if claim["erratum"]:
        said += f" *In print:* {shown(claim['erratum'])}"
    measured = number(claim["measured"])
    if claim["error"]:
        measured += f" ± {claim['error']:.1g}"
    verdict = claim["verdict"]
    mark = {"holds": "✓", "fails": "**✗ fails**"}.get(verdict, verdict)
    cells = [said, shown(claim["source"]), measured, interval(claim["interval"]), mark]
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"


def number(value: float | None) -> str:
    """A measured number, short.

    >>> number(0.123456789), number(None)
    ('0.12346', 'none')
    """
    return "none" if value is None else f"{value:.5g}"


def interval(ends: list[float | None]) -> str:
    """An interval in words where one end is open, as a middle and a width where it is narrow.

    >>> interval([None, 1.0]), interval([0.5, None]), interval([0.0, 1.0])
    ('at most 1', 'at least 0.5', '0 to 1')
    >>> interval([0.9999999, 1.0000001])
    '1 ± 1e-07'
    """
    low, high = ends
    if low is None and high is None:
        return "none"
    if low is None:
        return f"at most {high:.5g}"
    if high is None:
        return f"at least {low:.5g}"
    if low == high:
        return f"exactly {low:.5g}"
    if f"{low:.5g}" == f"{high:.5g}":
        return f"{(low + high) / 2:.5g} ± {(high - low) / 2:.1g}"
    return f"{low:.5g} to {high:.5g}"

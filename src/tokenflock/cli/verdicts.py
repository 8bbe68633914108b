"""Verdicts on a terminal: a line for each item as it ends, one bar below them, and what to look at
in the end.

The bar and the lines are printed by one console, so that neither cuts the other; where standard
output is no terminal there are only lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from tokenflock.cli import stopping
from tokenflock.cli.console import console, hanging
from tokenflock.pages.claims import counted
from tokenflock.pages.paper import claims_in_words
from tokenflock.reproduction.claim import FAILS, HOLDS, NOT_RUN, Claim
from tokenflock.reproduction.item import Item
from tokenflock.reproduction.mathematics import unicode
from tokenflock.reproduction.numerals import interval, measured
from tokenflock.reproduction.outcome import Outcome, Report
from tokenflock.reproduction.reproduce import Audience

_LOOK = {HOLDS: "green", FAILS: "bold red", NOT_RUN: "yellow"}
_NAME = 40  # columns of an item's name
_INDENT = 8
_HELD = "\ue000"  # a space of a formula, at which no line ends


@contextmanager
def watching(items: Sequence[Item]) -> Iterator[Audience]:
    """One bar over all items, which moves within an item too, and a line for each that ends."""
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.fields[count]}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    live = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not live) as bar:
        task = bar.add_task("", total=len(items), count=f"0/{len(items)}")
        ended: list[str] = []

        def begins(item: Item) -> None:
            bar.update(task, description=item.name, refresh=True)

        def goes(done: int, total: int) -> None:
            stopping.check()
            bar.update(task, completed=len(ended) + done / max(total, 1))

        def ends(outcome: Outcome, remembered: bool) -> None:
            ended.append(outcome.item.name)
            count = f"{len(ended)}/{len(items)}"
            bar.update(task, completed=len(ended), count=count, description="")
            _line(outcome, remembered)

        yield Audience(begins, goes, ends)


def tell(report: Report, every: bool = False) -> None:
    """How many claims hold; those that fail in full, and all of them where wanted."""
    shown = [claim for claim in report.claims if every or claim.verdict == FAILS]
    for claim in shown:
        _claim(claim)
    console.print()
    console.print(
        Text.assemble(f"{claims_in_words(len(report.claims))}: ", _tally(report.claims)),
        soft_wrap=True,
    )


def _line(outcome: Outcome, remembered: bool) -> None:
    took = "as before" if remembered else f"{outcome.seconds:.1f} s"
    name = Text(f"{outcome.item.name:<{_NAME}} ", style="cyan")
    line = Text.assemble(name, f"{took:>9}  ", _tally(outcome.claims))
    hanging(line, _NAME + 12)
    if outcome.verdict == NOT_RUN:
        _paragraph(outcome.problem, 4)


def _tally(claims: Sequence[Claim]) -> Text:
    told = (Text(words, style=_LOOK[verdict]) for verdict, words in counted(claims).items())
    return Text(", ").join(told)


def _claim(claim: Claim) -> None:
    head = Text(f"{claim.verdict:>7} ", style=_LOOK[claim.verdict])
    console.print(Text.assemble(head, Text(claim.id, style="cyan")), soft_wrap=True)
    _paragraph(unicode(f"{claim.statement} [{claim.source}]", _HELD), _INDENT)
    found = f"measured {measured(claim)}, must be {interval(claim)}"
    _paragraph(unicode(found, _HELD), _INDENT)
    if claim.verdict != HOLDS and claim.note:
        _paragraph(unicode(claim.note, _HELD), _INDENT)


def _paragraph(text: str, indent: int) -> None:
    """A text to the right of an indent: in lines of whole words and formulas on a terminal, else in
    one.
    """
    whole = Text(text)
    for line in whole.wrap(console, console.width - indent) if console.is_terminal else [whole]:
        console.print(Text(" " * indent + line.plain.replace(_HELD, " ")), soft_wrap=True)

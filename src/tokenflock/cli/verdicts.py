"""Verdicts on a terminal: a line for each item as it ends, and what to look at in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tokenflock.cli import stopping
from tokenflock.cli.console import console, errors
from tokenflock.pages.claims import counted
from tokenflock.pages.paper import claims_in_words
from tokenflock.reproduction.claim import FAILS, HOLDS, NOT_RUN, Claim
from tokenflock.reproduction.item import Item
from tokenflock.reproduction.numerals import interval, measured
from tokenflock.reproduction.outcome import Outcome, Report
from tokenflock.reproduction.reproduce import Audience

_LOOK = {HOLDS: "green", FAILS: "bold red", NOT_RUN: "yellow"}


@contextmanager
def watching(items: Sequence[Item]) -> Iterator[Audience]:
    """A bar over all items with the time left, one within the item, a line for each that ends."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        whole = bar.add_task("all items", total=len(items), count=f"0/{len(items)}")
        part = bar.add_task("", total=None, count="")

        def begins(item: Item) -> None:
            bar.reset(part, total=None, description=item.name, count="")

        def goes(done: int, total: int) -> None:
            stopping.check()
            bar.update(part, completed=done, total=total, count=f"{done / max(total, 1):.0%}")

        ended: list[str] = []

        def ends(outcome: Outcome, remembered: bool) -> None:
            ended.append(outcome.item.name)
            bar.update(whole, completed=len(ended), count=f"{len(ended)}/{len(items)}")
            _line(outcome, remembered)

        yield Audience(begins, goes, ends)


def tell(report: Report, every: bool = False) -> None:
    """How many claims hold; those that fail in full, and all of them where wanted."""
    shown = [claim for claim in report.claims if every or claim.verdict == FAILS]
    for claim in shown:
        _claim(claim)
    console.print(f"\n{claims_in_words(len(report.claims))}: {_tally(report.claims)}")


def _line(outcome: Outcome, remembered: bool) -> None:
    took = "as before" if remembered else f"{outcome.seconds:.1f} s"
    told = _tally(outcome.claims)
    console.print(f"[cyan]{outcome.item.name:<34}[/] {took:>9}  {told}", soft_wrap=True)
    if outcome.verdict == NOT_RUN:
        console.print(f"    {escape(outcome.problem)}", soft_wrap=True)


def _tally(claims: Sequence[Claim]) -> str:
    return ", ".join(f"[{_LOOK[verdict]}]{words}[/]" for verdict, words in counted(claims).items())


def _claim(claim: Claim) -> None:
    console.print(
        f"[{_LOOK[claim.verdict]}]{claim.verdict:>7}[/] [cyan]{claim.id}[/]", soft_wrap=True
    )
    console.print(f"        {escape(claim.statement)} ({escape(claim.source)})", soft_wrap=True)
    console.print(
        f"        measured {escape(measured(claim))}, must be {escape(interval(claim))}",
        soft_wrap=True,
    )
    if claim.verdict != HOLDS and claim.note:
        console.print(f"        {escape(claim.note)}", soft_wrap=True)

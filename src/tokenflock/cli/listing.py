"""`tokenflock list`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter

from tokenflock.catalogue import KINDS, Entry, entries, find
from tokenflock.cli.console import console
from tokenflock.errors import UserError


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return listing


def listing(
    kind: Annotated[
        str | None,
        Parameter(help="dynamics, parts, starts, solvers, observables, events, matrices, theory"),
    ] = None,
    name: Annotated[str | None, Parameter(help="one member, shown in full")] = None,
    /,
) -> None:
    """Show what there is, one line each, or one member in full.

    Example: `tokenflock list dynamics`

    Example: `tokenflock list dynamics self-attention`
    """
    if kind is not None and kind not in KINDS:
        raise UserError(f"there is no kind {kind!r}; choose {', '.join(KINDS)}")
    if kind and name:
        _full(find(kind, name))
        return
    for shown in [kind] if kind else KINDS:
        _table(shown)
    if not kind:
        console.print("one member in full: tokenflock list dynamics self-attention")


def _table(kind: str) -> None:
    from rich.table import Table

    table = Table(
        box=None, padding=(0, 2), show_header=False, title=f"[bold]{kind}[/]", title_justify="left"
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for entry in entries(kind):
        table.add_row(entry.slug, entry.summary)
    console.print(table)
    console.print()


def _full(entry: Entry) -> None:
    console.print(f"[bold cyan]{entry.slug}[/]  ({entry.module}.{entry.name})\n")
    console.print(entry.doc, markup=False)
    if entry.options:
        console.print("\n[bold]options[/]")
        for option in entry.options:
            default = "required" if option.default is None else f"default {option.default}"
            console.print(
                f"  --{option.name:<12} {option.doc} ({default})".replace(" ()", ""), markup=False
            )

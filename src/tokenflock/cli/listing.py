"""`tokenflock list`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from tokenflock.catalogue import KINDS, Entry, entries, find
from tokenflock.cli.console import console, described
from tokenflock.errors import UserError

WIDEST = 28  # columns of a name; a longer one has a line of its own


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
        near = get_close_matches(kind, KINDS, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"choose {', '.join(KINDS)}"
        raise UserError(f"there is no kind {kind!r}; {remedy}")
    if kind and name:
        _full(find(kind, name))
        return
    for shown in [kind] if kind else KINDS:
        _table(shown)
    if not kind:
        console.print("one member in full: tokenflock list dynamics self-attention")


def _table(kind: str) -> None:
    console.print(Text(kind, style="bold"))
    shown = entries(kind)
    width = min(max(len(entry.slug) for entry in shown), WIDEST) + 2
    for entry in shown:
        described(f"  {entry.slug}", entry.summary, width + 2)
    console.print()


def _block(block: str) -> None:
    """A paragraph in lines of this terminal; formulas and examples in their own."""
    kept = any(line.startswith(("    ", ">>>", "  ")) for line in block.splitlines())
    text = Text(block if kept else " ".join(block.split()))
    console.print(text, soft_wrap=kept or not console.is_terminal)
    console.print()


def _full(entry: Entry) -> None:
    console.print(f"[bold cyan]{entry.slug}[/]  ({entry.module}.{entry.name})\n")
    for block in entry.doc.split("\n\n"):
        _block(block)
    if entry.options:
        console.print("[bold]options[/]")
        for option in entry.options:
            described(f"  --{option.name}", f"{option.doc}{_default(option.default)}", 18)


def _default(value: str | None) -> str:
    """What an option is unless given, as one would type it; None says that its text tells.

    >>> _default("Convention.PAPER"), _default("1.0"), _default(None), _default("None")
    (' (default paper)', ' (default 1.0)', ' (required)', '')
    """
    if value in (None, "None"):
        return "" if value else " (required)"
    named = value.rpartition(".")[2]
    return f" (default {named.lower() if named.isupper() else value})"

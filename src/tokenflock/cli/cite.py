"""`tokenflock cite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from tokenflock.cli.console import hanging


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return cite


def cite(run: Annotated[Path, Parameter(help="a saved run")], /) -> None:
    """Print, as BibTeX, the references of exactly what a saved run used.

    Example: `tokenflock cite run.nc`
    """
    from tokenflock.verbs.cite import bibliography, references
    from tokenflock.verbs.save_load import load

    table = bibliography()
    for number, key in enumerate(references(load(run))):
        for line in [""] * (number > 0) + table[key].splitlines():
            hanging(Text(line), 4)

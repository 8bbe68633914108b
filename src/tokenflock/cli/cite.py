"""`tokenflock cite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return cite


def cite(run: Annotated[Path, Parameter(help="a saved run")], /) -> None:
    """Print, as BibTeX, the references of exactly what a saved run used.

    Example: `tokenflock cite run.nc`
    """
    import tokenflock as flock
    from tokenflock.verbs.save_load import load

    flock.cite(load(run))

"""`tokenflock reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from tokenflock.cli import stopping
from tokenflock.cli.console import console, described, hanging, keep_compiled, say
from tokenflock.errors import UserError
from tokenflock.reproduction.item import find, papers
from tokenflock.reproduction.mathematics import unicode

Name = Annotated[
    str,
    Parameter(help="a paper (perspective) or an item of it (perspective/fig3); all unless given"),
]
ScaleName = Annotated[
    Literal["quick", "paper"],
    Parameter(help="quick: minutes on two cores; paper: the published sizes, for a GPU"),
]
Model = Annotated[
    str | None, Parameter(help="a trained model (folder or name) for the items that need one")
]


def command(tokens: Sequence[str]) -> Callable[..., int]:
    """The command, whatever follows it."""
    return reproduce


def reproduce(
    *names: Name,
    scale: ScaleName = "quick",
    out: Annotated[Path, Parameter(help="the folder to write to")] = Path("report"),
    model: Model = None,
    again: Annotated[bool, Parameter(help="run finished items again", negative=())] = False,
    dask: Annotated[
        str | None,
        Parameter(help="address of a Dask scheduler, whose workers run the items side by side"),
    ] = None,
    list_: Annotated[
        bool, Parameter(name="--list", help="show what can be reproduced", negative=())
    ] = False,
) -> int:
    """Rerun papers: every figure, and a verdict on every claim, on one page.

    Writes OUT/index.html, OUT/claims.json, the numbers (netCDF) and the figures (png, pdf). A claim
    that fails makes the exit code 1. After Ctrl-C the same command goes on where it stopped.

    Example: `tokenflock reproduce perspective`

    Example: `tokenflock reproduce perspective/fig3 --scale paper --out report`

    Example: `tokenflock reproduce perspective --scale paper --dask tcp://10.0.0.1:8786`

    Example: `tokenflock reproduce --list`
    """
    if list_:
        if names:
            raise UserError(
                f"--list shows everything, got {' '.join(names)!r}; leave that out, or --list"
            )
        _list()
        return 0
    items = find(names)
    known(model)
    keep_compiled()
    import tokenflock as flock
    from tokenflock.cli.verdicts import tell, watching

    stopping.goes_on(f"what is done is in {out}, and the same command goes on from there")
    with watching(items) as watcher:
        report = flock.reproduce(
            names, scale=scale, out=out, model=model, again=again, watcher=watcher, dask=dask
        )
    tell(report)
    say(f"\nThe report is {(out / 'index.html').resolve()}")
    return 0 if report.holds else 1


def known(model: str | None) -> None:
    """Refuse a model that is not there, whether or not an item asks for it."""
    if model is None or Path(model).is_dir():
        return
    from tokenflock import probing

    if not probing.cached(model):
        probing.load(model)


def _list() -> None:
    for paper in papers():
        hanging(Text.assemble((paper.name, "bold"), f"  {paper.title}"), 2)
        width = max(len(item.name) for item in paper.items) + 4
        for item in paper.items:
            said = f"{unicode(item.source)}: {unicode(item.title)}"
            described(f"  {item.name}", said, width)
        console.print()

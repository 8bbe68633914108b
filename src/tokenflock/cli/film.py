"""`tokenflock film`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved
from tokenflock.cli.options import FilmOptions, ReelOptions
from tokenflock.cli.plot import one_prompt
from tokenflock.errors import UserError
from tokenflock.files import replaceable


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return film


def film(
    run: Annotated[Path, Parameter(help="a saved run")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="a .mp4, .gif or .html file [default: beside the run, .mp4]")
    ] = None,
    shot: FilmOptions = FilmOptions(),
    reel: ReelOptions = ReelOptions(),
    prompt: Annotated[
        int | None, Parameter(help="which prompt of a probed model, from 0 [default: the first]")
    ] = None,
) -> None:
    """Make a film of a saved run, as mp4, gif or html.

    Example: `tokenflock film run.nc --out run.mp4`

    Example: `tokenflock film bard.nc --view plane --prompt 2 --out letters.mp4`

    Example: `tokenflock film run.nc --out run.html` (one page, which any browser plays)

    Example: `tokenflock film run.nc --out run.gif --seconds 6 --fps 20 --theme dark --landscape`
    """
    from tokenflock.cli.opening import doubted
    from tokenflock.verbs.save_load import load

    result = one_prompt(load(run), prompt)
    if "x" not in result and "density" not in result:
        raise UserError(
            f"{run} holds {', '.join(map(str, result.data_vars))}, and no tokens to film; draw it"
            f" with: tokenflock plot {quote(str(run))}"
        )
    out = out or run.with_suffix(".mp4")
    replaced = replaceable(out)
    keep_compiled()
    from tokenflock.plots import film as make

    with doubted(run, result, "filmed"), progress("filming") as report:
        make(result, out, progress=report, **reel.asked(), **asdict(shot))
    saved(out, replaced)

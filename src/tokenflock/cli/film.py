"""`tokenflock film`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved
from tokenflock.cli.plot import one_prompt
from tokenflock.errors import UserError
from tokenflock.files import replaceable


def command(tokens: Sequence[str]) -> Callable[..., None]:
    return film


def film(
    run: Annotated[Path, Parameter(help="a saved run")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="a .mp4 or .gif file [default: beside the run, .mp4]")
    ] = None,
    view: Annotated[
        Literal["auto", "circle", "sphere", "plane"], Parameter(help="how to look at the tokens")
    ] = "auto",
    fps: Annotated[int, Parameter(help="pictures a second")] = 30,
    seconds: Annotated[
        float | None, Parameter(help="length of the film [default: every frame once]")
    ] = None,
    size: Annotated[str | None, Parameter(help="width x height in pixels, e.g. 1280x720")] = None,
    tail: Annotated[int, Parameter(help="earlier frames drawn behind each token")] = 15,
    landscape: Annotated[
        bool, Parameter(help="draw the potential of the tokens", negative=())
    ] = False,
    log_time: Annotated[
        bool | None,
        Parameter(help="logarithmic time beside the tokens [default: as the frames lie]"),
    ] = None,
    spin: Annotated[float, Parameter(help="degrees by which the camera turns (sphere)")] = 0.0,
    between: Annotated[
        int | None, Parameter(help="pictures between two layers of a model, on straight lines")
    ] = None,
    prompt: Annotated[int, Parameter(help="which prompt of a probed model, from 0")] = 0,
    theme: Annotated[Literal["light", "dark"], Parameter(help="light or dark")] = "light",
) -> None:
    """Make a film of a saved run, as mp4 or gif.

    Example: `tokenflock film run.nc --out run.mp4`

    Example: `tokenflock film bard.nc --view plane --prompt 2 --out letters.mp4`

    Example: `tokenflock film run.nc --out run.gif --seconds 6 --fps 20 --theme dark --landscape`
    """
    out = out or run.with_suffix(".mp4")
    replaced = replaceable(out)
    from tokenflock.cli.opening import opened

    result = one_prompt(opened(run), prompt)
    keep_compiled()
    from tokenflock.plots import film as make

    with progress("filming") as report:
        make(
            result,
            out,
            view=view,
            fps=fps,
            seconds=seconds,
            size=_size(size),
            theme=theme,
            landscape=landscape,
            tail=tail,
            spin=spin,
            log_time=log_time,
            between=between,
            progress=report,
        )
    saved(out, replaced)


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise UserError(
            f"--size must be width x height, got {text!r}; write e.g. --size 1280x720"
        ) from None
    return width, height

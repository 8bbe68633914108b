"""`tokenflock plot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, saved
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import replaceable

Tokens = Literal["overview", "circle", "sphere", "plane", "trajectories", "attention"]
Statistics = Literal["histogram", "histogram-over-time", "timeline"]
Ensemble = Literal["phase-diagram", "curves", "survival"]
Training = Literal["training"]
Measure = Literal["density-over-time", "radial", "density-surface"]
KINDS = {
    "a run": get_args(Tokens) + get_args(Statistics),
    "an ensemble": get_args(Ensemble),
    "a measure": get_args(Measure),
    "a training": get_args(Training),
}  # the first is the default
AT = (
    "circle",
    "sphere",
    "plane",
    "histogram",
    "attention",
    "radial",
    "density-surface",
)  # what is drawn at one time


def command(tokens: Sequence[str]) -> Callable[..., None]:
    return plot


def plot(
    run: Annotated[Path, Parameter(help="a saved run")],
    /,
    *,
    kind: Annotated[
        Literal["auto"] | Tokens | Statistics | Ensemble | Measure | Training,
        Parameter(
            help=(
                "what to draw; auto is overview for a run, phase-diagram for an ensemble,"
                " density-over-time for a measure, "
                "training for a watch.nc"
            )
        ),
    ] = "auto",
    at: Annotated[
        str | None,
        Parameter(help="time, or times for a histogram, e.g. 0,5,30 [default: the last]"),
    ] = None,
    tail: Annotated[
        int, Parameter(help="earlier frames drawn behind each token (circle, sphere, plane)")
    ] = 0,
    landscape: Annotated[
        bool, Parameter(help="draw the potential of the tokens (circle, sphere)", negative=())
    ] = False,
    observable: Annotated[
        str | None, Parameter(help="which variable of an ensemble to draw [default: the first]")
    ] = None,
    log_time: Annotated[bool, Parameter(help="logarithmic time", negative=())] = False,
    prompt: Annotated[int, Parameter(help="which prompt of a probed model, from 0")] = 0,
    theme: Annotated[
        Literal["light", "dark"], Parameter(help="light for print, dark for a screen")
    ] = "light",
    out: Annotated[
        Path | None, Parameter(help="a .png, .pdf or .svg file [default: beside the run]")
    ] = None,
) -> None:
    """Draw a saved run or a saved phase diagram.

    Example: `tokenflock plot run.nc --out run.png`

    Example: `tokenflock plot run.nc --kind circle --at 5 --tail 20 --theme dark --out circle.pdf`

    Example: `tokenflock plot d2.nc --kind curves --out d2.pdf`

    Example: `tokenflock plot gpt/watch.nc --out training.png`
    """
    if tail < 0:
        raise UserError(f"--tail must be 0 or more, got {tail}")
    out = out or run.with_suffix(".png")
    replaced = replaceable(out)
    from tokenflock.cli.opening import opened

    result = one_prompt(opened(run), prompt)
    chosen = _kind(kind, _holds(result))
    keep_compiled()
    from tokenflock import plots

    with plots.style(theme):
        figure = _draw(plots, result, chosen, at, tail, landscape, log_time, observable)
    plots.save_figure(figure, out)
    saved(out, replaced)


def one_prompt(result, prompt: int):
    """A result of one prompt; anything else as it is."""
    if "x" in result and result["x"].dtype.kind not in "fiu":
        raise UserError(f"the file must hold tokens x of numbers, got {result['x'].dtype}")
    if "x" not in result or "prompt" not in result["x"].dims:
        return result
    count = result.sizes["prompt"]
    if not 0 <= prompt < count:
        raise UserError(
            f"--prompt must be 0 to {count - 1}, got {prompt}: the file holds {count} prompts"
        )
    return result.isel(prompt=prompt)


def _holds(result) -> str:
    if "x" in result:
        return "a run"
    return (
        "a measure"
        if "density" in result
        else "a training"
        if "step" in result.dims
        else "an ensemble"
    )


def _kind(kind: str, held: str) -> str:
    """The kind that is meant, or an error where it does not fit what the file holds."""
    if kind == "auto":
        return KINDS[held][0]
    if kind not in KINDS[held]:
        raise UserError(
            f"--kind {kind} does not fit: the file holds {held}; choose {', '.join(KINDS[held])}"
        )
    return kind


def _draw(
    plots,
    result,
    kind: str,
    at: str | None,
    tail: int,
    landscape: bool,
    log_time: bool,
    observable: str | None,
):
    times = None if at is None else numbers(at, "--at")
    if times is not None and kind not in AT:
        raise UserError(f"--at is for {', '.join(AT)}, not for {kind}")
    if observable is not None and kind not in KINDS["an ensemble"]:
        raise UserError(
            f"--observable is for {', '.join(KINDS['an ensemble'])} of an ensemble, not for {kind};"
            f" leave it out (the file holds {', '.join(map(str, result.data_vars))})"
        )
    moment = None if times is None else float(times[0])
    make = getattr(plots, kind.replace("-", "_"))
    if kind in ("circle", "sphere"):
        return make(result, at=moment, tail=tail, landscape=landscape)
    if kind == "training":
        return make(result)
    if kind == "plane":
        return make(result, at=moment, tail=tail)
    if kind in ("attention", "radial", "density-surface"):
        return make(result, at=moment)
    if kind == "histogram":
        return make(result, at=None if times is None else list(times))
    if kind == "survival":
        return make(result, log_time=log_time or None)
    if kind in KINDS["an ensemble"]:
        name = None if observable is None else observable.replace("-", "_")
        return make(result, observable=name, log_time=log_time or None)
    return make(result, log_time=log_time)

"""`tokenflock plot`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, saved
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import replaceable

Tokens = Literal["overview", "circle", "sphere", "plane", "trajectories", "attention"]
Statistics = Literal["histogram", "histogram-over-time", "timeline"]
Ensemble = Literal["phase-diagram", "curves", "survival"]
Training = Literal["training"]
Steering = Literal["steering"]
Branch = Literal["bifurcation"]
Spectrum = Literal["spectrum"]
Exponents = Literal["exponents"]
Measure = Literal["density-over-time", "radial", "density-surface"]
# one list of words, since help names each part of a union
Changes = Literal[Spectrum, Exponents]  # how small ones grow
Kind = Literal["auto", Tokens, Statistics, Ensemble, Measure, Training, Steering, Branch, Changes]
# what can be drawn of each, by the names of the plots; the first is the default
KINDS = {
    "a run": get_args(Tokens) + get_args(Statistics),
    "an ensemble": get_args(Ensemble),
    "a measure": get_args(Measure),
    "a training": get_args(Training),
    "a steering": get_args(Steering),
    "a branch": get_args(Branch),
    "a spectrum": get_args(Spectrum),
    "Lyapunov exponents": get_args(Exponents),
}


@Parameter(name="*")
@dataclass(frozen=True)
class PlotOptions:
    """What is drawn of a result."""

    at: Annotated[
        str | None,
        Parameter(help="time, or times for a histogram, e.g. 0,5,30 [default: the last]"),
    ] = None
    tail: Annotated[
        int, Parameter(help="earlier frames drawn behind each token (circle, sphere, plane)")
    ] = 0
    landscape: Annotated[
        bool, Parameter(help="draw the potential of the tokens (circle, sphere)", negative=())
    ] = False
    observable: Annotated[
        str | None, Parameter(help="which variable of an ensemble to draw [default: the first]")
    ] = None
    log_time: Annotated[bool, Parameter(help="logarithmic time", negative=())] = False

    def check(self) -> None:
        """Refuse a tail into the future."""
        if self.tail < 0:
            raise UserError(f"--tail must be 0 or more, got {self.tail}")

    def asked(self, several: bool) -> dict[str, Any]:
        """The same for a plot, which may take several times; None where nothing is asked for."""
        times = None if self.at is None else numbers(self.at, "--at").tolist()
        if times is not None and len(times) > 1 and not several:
            raise UserError(
                f"--at takes one time here, got {self.at!r}; several are for --kind histogram"
            )
        name = self.observable
        return {
            "at": times if several or times is None else times[0],
            "tail": self.tail,
            "landscape": self.landscape,
            "observable": None if name is None else name.replace("-", "_"),
            "log_time": self.log_time or None,
        }


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return plot


def plot(
    run: Annotated[Path, Parameter(help="a saved run, or the store of a sweep")],
    /,
    *,
    kind: Annotated[
        Kind,
        Parameter(
            help=(
                "what to draw; auto is overview for a run, phase-diagram for an ensemble,"
                " density-over-time for a measure, "
                "training for a watch.nc, and what is drawn of the others"
            )
        ),
    ] = "auto",
    picture: PlotOptions = PlotOptions(),
    prompt: Annotated[
        int | None, Parameter(help="which prompt of a probed model, from 0 [default: the first]")
    ] = None,
    theme: Annotated[
        Literal["light", "dark"], Parameter(help="light for print, dark for a screen")
    ] = "light",
    out: Annotated[
        Path | None, Parameter(help="a .png, .pdf or .svg file [default: beside the run]")
    ] = None,
) -> None:
    """Draw a saved run, phase diagram, measure, steering, branch, spectrum or Lyapunov exponents.

    Example: `tokenflock plot run.nc --out run.png`

    Example: `tokenflock plot run.nc --kind circle --at 5 --tail 20 --theme dark --out circle.pdf`

    Example: `tokenflock plot d2.nc --kind curves --out d2.pdf`

    Example: `tokenflock plot big.zarr --out so-far.png` (a sweep, which may still be running)

    Example: `tokenflock plot gpt/watch.nc --out training.png`
    """
    picture.check()
    from tokenflock.cli.opening import doubted, opened

    result = one_prompt(opened(run), prompt)
    out = out or run.with_suffix(".png")
    replaced = replaceable(out)
    chosen = _kind(kind, _holds(result))
    keep_compiled()
    from tokenflock import plots

    with doubted(run, result, "drawn"):
        with plots.style(theme):
            figure = _draw(plots, result, chosen, picture)
        plots.save_figure(figure, out)
    saved(out, replaced)


def one_prompt(result, prompt: int | None):
    """A result of one prompt; anything else as it is."""
    if "x" in result and result["x"].dtype.kind not in "fiu":
        raise UserError(f"the file must hold tokens x of numbers, got {result['x'].dtype}")
    if "x" not in result or "prompt" not in result["x"].dims:
        if prompt is not None:
            raise UserError("--prompt is for several prompts of a probed model; leave it out")
        return result
    count, prompt = result.sizes["prompt"], prompt or 0
    if not 0 <= prompt < count:
        raise UserError(
            f"--prompt must be 0 to {count - 1}, got {prompt}: the file holds {count} prompts"
        )
    return result.isel(prompt=prompt)


def _holds(result) -> str:
    if "target" in result and "loss" in result:
        return "a steering"
    if "estimate" in result and "exponent" in result:
        return "Lyapunov exponents"
    if "rate" in result and "frequency" in result:
        return "a spectrum"
    if "x" in result:
        return "a run"
    if "point" in result.dims and "stable" in result:
        return "a branch"
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


def _draw(plots, result, kind: str, picture: PlotOptions):
    """The plot of this kind, with those of the options that it takes."""
    if picture.observable is not None and kind not in KINDS["an ensemble"]:
        raise UserError(
            f"--observable is for {', '.join(KINDS['an ensemble'])} of an ensemble, not for {kind};"
            f" leave it out (the file holds {', '.join(map(str, result.data_vars))})"
        )
    if kind == "survival" and "survival" not in result:
        raise UserError(
            "--kind survival draws how long until an event, and this ensemble has none; make one"
            " with: tokenflock phase --until consensus"
        )
    taken = _options(plots, kind)
    for name in ("at", "tail", "landscape", "log_time"):
        if getattr(picture, name) and name not in taken:
            kinds = [each for names in KINDS.values() for each in names]
            fits = [each for each in kinds if name in _options(plots, each)]
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} is for {', '.join(fits)}, not for {kind}; leave it out")
    asked = picture.asked(several=kind == "histogram")
    given = {name: value for name, value in asked.items() if value is not None and name in taken}
    return _function(plots, kind)(result, **given)


def _function(plots, kind: str) -> Callable:
    return getattr(plots, kind.replace("-", "_"))


def _options(plots, kind: str) -> Mapping[str, inspect.Parameter]:
    """The options of the plot of a kind."""
    return inspect.signature(_function(plots, kind)).parameters

"""`tokenflock gpt`: train, sample, probe, ladder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tokenflock.cli import stopping
from tokenflock.cli.console import console, errors, keep_compiled, saved, say, visible
from tokenflock.cli.values import counted, wholes
from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, made_folder, replaceable

if TYPE_CHECKING:
    import xarray as xr

Folder = Annotated[Path, Parameter(help="the folder of a checkpoint")]
TextFile = Annotated[
    Path | None,
    Parameter(help="a text file [default: the manual of Python, which every Python carries]"),
]
Preset = Annotated[
    Literal["cpu", "quick", "gpu"],
    Parameter(help="cpu: minutes on two cores; quick: seconds; gpu: larger"),
]
Rung = Literal["bigram", "head", "multi-head", "feed-forward", "residual", "gpt"]
_HELP = """Train a small GPT from scratch, sample from it, and watch its tokens.

Example: `tokenflock gpt train --preset cpu --text shakespeare.txt --out bard`
"""


def command(tokens: Sequence[str]) -> App:
    """The four commands as one application."""
    app = App(name="gpt", help=_HELP, help_format="markdown", version_flags=())
    for verb in (train, sample, probe, ladder):
        app.command(verb)
    return app


@Parameter(name="*")
@dataclass(frozen=True)
class ShapeOptions:
    """The shape of a model; what is None is as in the preset."""

    rung: Annotated[Rung | None, Parameter(help="which rung of the ladder")] = None
    context: Annotated[int | None, Parameter(help="tokens that the model sees")] = None
    width: Annotated[int | None, Parameter(help="coordinates of a token")] = None
    heads: Annotated[int | None, Parameter(help="heads of attention")] = None
    depth: Annotated[int | None, Parameter(help="layers")] = None
    dropout: Annotated[
        float | None, Parameter(help="share of entries that are dropped while training")
    ] = None
    positions: Annotated[
        Literal["learned", "sinusoidal", "rotary"] | None, Parameter(help="how places are told")
    ] = None
    norm: Annotated[
        Literal["pre", "post", "peri", "ngpt"] | None, Parameter(help="where tokens are normalised")
    ] = None
    shared: Annotated[bool | None, Parameter(help="one layer, iterated", negative=())] = None


@Parameter(name="*")
@dataclass(frozen=True)
class ScheduleOptions:
    """How a model is trained; what is None is as in the preset."""

    steps: Annotated[int | None, Parameter(help="steps of training")] = None
    batch: Annotated[int | None, Parameter(help="windows of text per step")] = None
    rate: Annotated[float | None, Parameter(help="peak learning rate")] = None
    every: Annotated[int | None, Parameter(help="steps between validations and checkpoints")] = None
    seed: Annotated[int | None, Parameter(help="of weights, batches and dropout")] = None


def train(
    *,
    out: Annotated[
        Path, Parameter(help="the folder to keep the model in; an interrupted run goes on from it")
    ],
    text: TextFile = None,
    preset: Preset = "cpu",
    shape: ShapeOptions = ShapeOptions(),
    schedule: ScheduleOptions = ScheduleOptions(),
    byte_pairs: Annotated[
        int | None, Parameter(help="byte pairs: the size of the vocabulary [default: characters]")
    ] = None,
    watch: Annotated[
        str | None,
        Parameter(help="steps at which tokens are measured into watch.nc, e.g. 0,10,100,1000"),
    ] = None,
) -> None:
    """Train a model on a text; run the same command again to go on after an interruption.

    What is left out is as in the preset.

    Example: `tokenflock gpt train --preset cpu --text shakespeare.txt --out bard`

    Example: `tokenflock gpt train --preset quick --shared --norm ngpt --watch 0,100,300 --out
    shared`
    """
    made_folder(out)
    marks = [] if watch is None else wholes(watch, "--watch")
    keep_compiled()
    from tokenflock import gpt
    from tokenflock.gpt.settings import least_memory
    from tokenflock.gpt.text import read

    settings = gpt.preset(preset, **asdict(shape), **asdict(schedule))
    require_memory(
        least_memory(*settings),
        "training this model",
        "take a smaller --width, --depth, --context or --batch",
    )
    stopping.goes_on(f"the same command goes on from the last checkpoint in {out}")
    with _told(settings[1].steps) as tell:
        last = gpt.train(out, read(text), *settings, byte_pairs=byte_pairs, tell=tell, watch=marks)
    console.print(f"val loss {last.history[-1][2]:.4f} after {last.step} steps", soft_wrap=True)
    say(f"saved {out}; read what it writes with: tokenflock gpt sample {out}")


def sample(
    folder: Folder,
    /,
    *,
    prompt: Annotated[
        str, Parameter(help="how the text begins [default: a new line]", show_default=False)
    ] = "\n",
    count: Annotated[int, Parameter(help="tokens to write")] = 500,
    temperature: Annotated[
        float, Parameter(help="below 1: more likely text; 0: always the likeliest token")
    ] = 0.8,
    top: Annotated[int | None, Parameter(help="draw from the so many likeliest tokens")] = None,
    seed: Annotated[int, Parameter(help="of the draws")] = 0,
) -> None:
    """Write text with a trained model.

    Example: `tokenflock gpt sample bard --prompt "ROMEO:" --temperature 0.8 --top 20 --seed 1`
    """
    keep_compiled()
    from tokenflock import gpt

    text = gpt.sample(folder, prompt, count, temperature=temperature, top=top, seed=seed)
    console.print(visible(text), markup=False, emoji=False, soft_wrap=True)


def probe(
    folder: Folder,
    /,
    *,
    text: Annotated[
        Path | None, Parameter(help="a file of texts [default: held-out passages beside the model]")
    ] = None,
    string: Annotated[str | None, Parameter(help="a text itself")] = None,
    depth: Annotated[int | None, Parameter(help="passes of the layer of a --shared model")] = None,
    untrained: Annotated[
        bool, Parameter(help="fresh weights instead: the control", negative=())
    ] = False,
    seed: Annotated[int, Parameter(help="of the fresh weights")] = 0,
    attention: Annotated[bool, Parameter(help="keep attention matrices", negative=())] = False,
    flow: Annotated[
        bool,
        Parameter(help="a --shared model as a flow: halve the step, double the depth", negative=()),
    ] = False,
    out: Annotated[Path | None, Parameter(help="a netCDF file for tokens and measurements")] = None,
) -> None:
    """Follow the tokens of a trained model layer by layer. `tokenflock probe DIR` makes a whole
    report of it.

    Example: `tokenflock gpt probe bard --out bard.nc`

    Example: `tokenflock gpt probe shared --depth 16 --flow`
    """
    if text is not None and string is not None:
        raise UserError("give one of --text and --string")
    replaced = out is not None and replaceable(out, NETCDF)
    keep_compiled()
    from tokenflock import gpt, probing
    from tokenflock.verbs.save_load import save

    if flow:
        _flow(folder)
    result = gpt.probe(
        folder,
        string if string is not None else text,
        depth,
        variant=probing.Variant(untrained=untrained, seed=seed),
        record=probing.Recording(attention=attention),
        observe=probing.survey(),
    )
    _tell_layers(result)
    if out is not None:
        save(result, out)
        saved(out, replaced)


def ladder(
    *,
    text: TextFile = None,
    preset: Preset = "quick",
    steps: Annotated[int | None, Parameter(help="steps of training of each rung")] = None,
    seed: Annotated[int | None, Parameter(help="of weights and batches")] = None,
    out: Annotated[Path, Parameter(help="a folder for the models, one each")] = Path("ladder"),
) -> None:
    """Train every rung from the bigram to the GPT on the same text, and set their validation losses
    side by side.

    Example: `tokenflock gpt ladder --text shakespeare.txt --steps 1000 --out ladder`
    """
    made_folder(out)
    keep_compiled()
    from tokenflock import gpt
    from tokenflock.gpt.settings import RUNGS
    from tokenflock.gpt.text import read

    content, before = read(text), None
    for rung in RUNGS:
        shape, schedule = gpt.preset(preset, rung=rung, steps=steps, seed=seed)
        with _told(schedule.steps, quiet=True) as tell:
            last = gpt.train(out / rung, content, shape, schedule, tell=tell)
        val = last.history[-1][2]
        beside = "" if before is None else f"  ({val - before:+.4f})"
        console.print(f"{rung:<13} val loss {val:.4f}{beside}")
        line = " ".join(gpt.sample(last, count=60).split())
        console.print(f"{'':<13} [dim]{escape(visible(line))}[/]", soft_wrap=True)
        before = val
    say(f"saved {out}")


@contextmanager
def _told(steps: int, quiet: bool = False) -> Iterator[Callable[[Any], None]]:
    """A bar with loss, tokens per second and time left on terminals.

    A line for each validation everywhere.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("training", total=steps, words="")

        def tell(now: Any) -> None:
            stopping.check()
            words = f"{now.speed:,.0f} tokens/s  {_time(now.left)} left"
            bar.update(task, completed=now.step, words=f"loss {now.loss:.3f}  {words}")
            if now.val is not None and not quiet:
                console.print(
                    f"step {now.step:>6}  loss {now.loss:.4f}  val loss {now.val:.4f}  {words}",
                    soft_wrap=True,
                )

        yield tell


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tell_layers(result: xr.Dataset) -> None:
    say(f", {counted(result.sizes['prompt'], 'prompt')}", title=result.attrs["title"])
    console.print("layer  mean cosine  clusters  effective rank  energy (beta 4)")
    for layer in result.layer.values:
        here = result.sel(layer=layer).mean("prompt")
        energy = float(here.energies.sel(beta=4.0))
        console.print(
            f"{int(layer):>5}  {float(here.mean_cosine):>11.4f}  {float(here.cluster_count):>8.2f} "
            f" {float(here.effective_rank):>14.2f}  {energy:>15.4f}"
        )


def _flow(folder: Path) -> None:
    import numpy as np

    from tokenflock import gpt
    from tokenflock.probing.texts import beside

    passages = [passage.ids for passage in beside(folder) or []]
    if not passages:
        raise UserError(f"{folder} has no prompts.json; train it again, or leave --flow out")
    refined = gpt.refine(gpt.load(folder).model, np.asarray(passages, np.int32))
    console.print("step h  depth  distance to the finest  change of predictions   loss")
    for k in range(refined.sizes["factor"]):
        row = refined.isel(factor=k)
        console.print(
            f"{float(row.h):>6.3f}  {int(row.depth):>5}  {float(row.distance):>22.4f} "
            f" {float(row.divergence):>21.4f}  {float(row.loss):>5.3f}"
        )

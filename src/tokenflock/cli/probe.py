"""`tokenflock probe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.cli.values import counted, wholes
from tokenflock.errors import UserError, require
from tokenflock.files import NETCDF, replaceable

if TYPE_CHECKING:  # imported when it runs, so that --help is fast
    import xarray as xr

    from tokenflock.probing.model import Model
    from tokenflock.probing.options import Recording, Selection, Variant
    from tokenflock.probing.texts import Text

ModelName = Annotated[
    str | None, Parameter(help="the folder of a model, or its name on the Hugging Face hub")
]
_MINIMUM = {"file": 32, "built-in": 300, "wikitext": 300}


@Parameter(name="*")
@dataclass(frozen=True)
class TextOptions:
    """Which texts a model reads."""

    text: Annotated[
        str | None,
        Parameter(
            help=(
                "a file (.txt: paragraphs; .csv: its column text; .json, .jsonl: texts or ready"
                " ids), or - for standard input"
                " [default: what lies beside the "
                "model as prompts.json, else the manual of Python]"
            ),
            allow_leading_hyphen=True,
        ),
    ] = None
    string: Annotated[str | None, Parameter(help="a text itself")] = None
    dataset: Annotated[
        Literal["wikitext"] | None, Parameter(help="WikiText-103, from the hub or its cache")
    ] = None
    prompts: Annotated[int, Parameter(help="how many texts to take, drawn with the seed")] = 8
    minimum: Annotated[
        int | None,
        Parameter(help="texts of more tokens only [default: 32; 300 for built-in and wikitext]"),
    ] = None
    length: Annotated[
        int | None, Parameter(help="tokens a text is cut to [default: 512 or what the model takes]")
    ] = None
    special: Annotated[bool, Parameter(help="let special tokens count")] = True
    first: Annotated[bool, Parameter(help="let the first token count")] = True
    seed: Annotated[int, Parameter(help="of the choice of texts and of fresh weights")] = 0

    def check(self) -> None:
        """Refuse what counts or draws nothing, whichever text is read."""
        for name, value, least in (("--prompts", self.prompts, 1), ("--seed", self.seed, 0)):
            require(value >= least, name, f"{least} or more", value)

    def selection(self) -> Selection:
        """Which tokens count."""
        from tokenflock.probing import Selection

        return Selection(self.special, self.first, self.length)


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """Which variant of a model runs, and beside what."""

    depth: Annotated[
        int | None, Parameter(help="passes of the layer of a weight-shared model (ALBERT)")
    ] = None
    heads: Annotated[int | None, Parameter(help="cut the same weights into so many heads")] = None
    untrained: Annotated[
        bool, Parameter(help="the same model with fresh weights beside it", negative=())
    ] = False
    follow: Annotated[
        bool,
        Parameter(help="the idealised dynamics with the model's matrices beside it", negative=()),
    ] = False
    batch: Annotated[int, Parameter(help="prompts run at once")] = 1
    dtype: Annotated[
        str | None,
        Parameter(
            help=(
                "float32, float64 (for deep models, which amplify rounding), bfloat16 or float16"
                " [default: float32]"
            )
        ),
    ] = None
    device: Annotated[
        str | None, Parameter(help="where torch runs [default: a GPU if there is one]")
    ] = None

    def variant(self) -> Variant:
        """The trained model."""
        from tokenflock.probing import Variant

        return Variant(self.depth, self.heads, dtype=self.dtype, device=self.device)


@Parameter(name="*")
@dataclass(frozen=True)
class RecordOptions:
    """What is kept of a model."""

    layers: Annotated[str | None, Parameter(help="layers to keep, e.g. 0,6,12 [default: all]")] = (
        None
    )
    normalise: Annotated[bool, Parameter(help="divide tokens by their length", negative=())] = False
    attention: Annotated[bool, Parameter(help="keep attention matrices", negative=())] = False
    sublayers: Annotated[
        bool, Parameter(help="keep the stream after attention too", negative=())
    ] = False
    states: Annotated[
        bool, Parameter(help="write the tokens themselves, not only what is measured")
    ] = True

    def recording(self, entropy: bool, states: bool) -> Recording:
        """The same for `tokenflock.probe`."""
        from tokenflock.probing import Recording

        given = self.layers
        return Recording(
            None if given is None else wholes(given, "--layers"),
            self.normalise,
            self.attention,
            entropy,
            self.sublayers,
            states=self.states and states,
        )


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return probe


def probe(
    model: ModelName = None,
    /,
    *,
    compare: Annotated[
        tuple[str, str] | None,
        Parameter(help="two models side by side, in one report", negative=()),
    ] = None,
    texts: TextOptions = TextOptions(),
    how: ModelOptions = ModelOptions(),
    keep: RecordOptions = RecordOptions(),
    out: Annotated[
        Path | None,
        Parameter(help="a netCDF file for tokens and measurements, written prompt by prompt"),
    ] = None,
    report: Annotated[
        Path | None,
        Parameter(help="an .html page [default: probe.html where nothing is asked for]"),
    ] = None,
) -> None:
    """Run a real Transformer on text and measure its tokens layer by layer.

    Example: `tokenflock probe ./albert-xlarge-v2 --text wikitext.txt --minimum 300 --out probe.nc
    --report probe.html`

    Example: `tokenflock probe ./albert-xlarge-v2 --depth 48 --untrained --report deep.html`

    Example: `tokenflock probe ./bert --string "Clusters of tokens form, one word at a time."
    --follow --report bert.html`

    Example: `tokenflock probe --compare ./albert-base-v2 ./bert --report two.html`
    """
    names = _models(model, compare)
    texts.check()
    report = report or (None if out else Path("probe.html"))
    places = [None if out is None else _place(out, k) for k in range(len(names))]
    there = _there(places, report)
    keep_compiled()
    from tokenflock import probing

    variant, selection = how.variant(), texts.selection()
    record = keep.recording(entropy=report is not None, states=out is not None)
    results, chosen = [], []
    for name, place in zip(names, places):
        source = _source(name, texts)
        loaded = probing.load(name, variant)
        chosen.append(_chosen(loaded, *source, texts))
        results.append(_probed(loaded, name, chosen[-1], record, selection, how.batch, place))
        if place is not None:
            saved(place, there[place])
    if how.untrained:
        control = probing.load(names[0], replace(variant, untrained=True, seed=texts.seed))
        record = replace(record, states=False)
        results.append(_probed(control, names[0], chosen[0], record, selection, how.batch, None))
    _tell(results)
    if report is not None:
        beside = _beside(names[0], chosen[0], how.depth, texts.length) if how.follow else ()
        _write(results, report, beside)
        saved(report, there[report])


def _there(places: list[Path | None], report: Path | None) -> dict[Path, bool]:
    """Which of the files to write are there already; a foreign one is refused."""
    there = {place: replaceable(place, NETCDF) for place in places if place is not None}
    return there if report is None else there | {report: replaceable(report, ".html")}


def _write(results: list[xr.Dataset], report: Path, beside: tuple[xr.Dataset, ...]) -> None:
    from tokenflock.pages import probe as page

    page.write(results, report, *beside)


def _models(model: str | None, compare: tuple[str, str] | None) -> list[str]:
    if model is not None and compare is None:
        return [model]
    if model is None and compare is not None:
        return list(compare)
    raise UserError("name one model (tokenflock probe ./bert), or two with --compare A B")


def _source(model: str, options: TextOptions) -> tuple[list[Text], str]:
    """The texts of the source that was named, else what lies beside the model, else Python's
    manual; and the kind of the source.
    """
    from tokenflock.probing import texts

    named = (options.text, options.string, options.dataset)
    if sum(source is not None for source in named) > 1:
        raise UserError("give one of --text, --string and --dataset")
    if options.string is not None:
        return [texts.Text(options.string)], "string"
    if options.dataset is not None:
        return texts.wikitext(), "wikitext"
    if options.text is not None:
        content = texts.from_stdin() if options.text == "-" else texts.from_file(options.text)
        return content, "file"
    lying = texts.beside(model) if Path(model).is_dir() else None
    if lying is not None:
        return lying, "file"
    say("no text was named: taking the manual of Python")
    return texts.built_in(), "built-in"


def _chosen(loaded: Model, texts: list[Text], kind: str, options: TextOptions) -> list[Text]:
    """The texts to run on, drawn by length and seed; a text itself is never left out."""
    from tokenflock import probing

    if kind == "string":
        return texts
    minimum = _MINIMUM[kind] if options.minimum is None else options.minimum
    limit = min(options.length or 512, loaded.facts.room)
    return probing.choose(loaded, texts, options.prompts, minimum, options.seed, limit)


def _probed(
    loaded: Model,
    name: str,
    texts: list[Text],
    record: Recording,
    selection: Selection,
    batch: int,
    out: Path | None,
) -> xr.Dataset:
    from tokenflock import probing

    short = "/".join(Path(name).parts[-2:])  # a long path would leave no room for the bar
    with progress(f"probing {short}") as told:
        return probing.probe(
            loaded,
            texts,
            record=record,
            tokens=selection,
            observe=probing.survey(),
            batch=batch,
            out=out,
            progress=told,
        )


def _place(out: Path, k: int) -> Path:
    """Where the result of model number k goes."""
    return out if k == 0 else out.with_stem(f"{out.stem}-{k + 1}")


def _beside(
    name: str, texts: list[Text], depth: int | None, length: int | None
) -> tuple[xr.Dataset, xr.Dataset]:
    """The idealised runs, and the matrices that they are made of."""
    from tokenflock import probing

    with progress("following the idealised model") as told:
        followed = probing.follow(name, texts, depth, length=length, progress=told)
    return followed, probing.particle_system(name)


def _tell(results: list[xr.Dataset]) -> None:
    """What happened, in a line or two for each model."""
    words = {
        "mean_cosine": "mean cosine {:.3f}, {:.3f}",
        "pair_density": "share of pairs above 0.9: {:.3f}, {:.3f}",
        "cluster_count": "clusters {:.0f}, {:.0f}",
    }
    for result in results:
        first, last = result.isel(layer=0), result.isel(layer=-1)
        told = "; ".join(
            text.format(float(first[name].mean()), float(last[name].mean()))
            for name, text in words.items()
        )
        where = f"at layers {int(first.layer)} and {int(last.layer)}"
        prompts = counted(result.sizes["prompt"], "prompt")
        say(f", {prompts}, {where}: {told}", title=result.attrs["title"], indent=2)

"""`tokenflock probe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.cli.values import counted, wholes
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

Model = Annotated[
    str | None, Parameter(help="the folder of a model, or its name on the Hugging Face hub")
]
_MINIMUM = {"file": 32, "built-in": 300, "wikitext": 300}


def command(tokens: Sequence[str]) -> Callable[..., None]:
    return probe


def probe(
    model: Model = None,
    /,
    *,
    compare: Annotated[
        tuple[str, str] | None,
        Parameter(help="two models side by side, in one report", negative=()),
    ] = None,
    text: Annotated[
        str | None,
        Parameter(
            help=(
                "a file (.txt: paragraphs, .csv, .json: ready ids), or - for standard input"
                " [default: what lies beside the "
                "model as prompts.json, else the manual of Python]"
            ),
            allow_leading_hyphen=True,
        ),
    ] = None,
    string: Annotated[str | None, Parameter(help="a text itself")] = None,
    dataset: Annotated[
        Literal["wikitext"] | None, Parameter(help="WikiText-103, from the hub or its cache")
    ] = None,
    prompts: Annotated[int, Parameter(help="how many texts to take, drawn with the seed")] = 8,
    minimum: Annotated[
        int | None,
        Parameter(help="texts of more tokens only [default: 32; 300 for built-in and wikitext]"),
    ] = None,
    length: Annotated[
        int | None, Parameter(help="tokens a text is cut to [default: 512 or what the model takes]")
    ] = None,
    depth: Annotated[
        int | None, Parameter(help="passes of the layer of a weight-shared model (ALBERT)")
    ] = None,
    heads: Annotated[int | None, Parameter(help="cut the same weights into so many heads")] = None,
    untrained: Annotated[
        bool, Parameter(help="the same model with fresh weights beside it", negative=())
    ] = False,
    follow: Annotated[
        bool,
        Parameter(help="the idealised dynamics with the model's matrices beside it", negative=()),
    ] = False,
    layers: Annotated[
        str | None, Parameter(help="layers to keep, e.g. 0,6,12 [default: all]")
    ] = None,
    normalise: Annotated[
        bool, Parameter(help="divide tokens by their length", negative=())
    ] = False,
    special: Annotated[bool, Parameter(help="let special tokens count")] = True,
    first: Annotated[bool, Parameter(help="let the first token count")] = True,
    attention: Annotated[bool, Parameter(help="keep attention matrices", negative=())] = False,
    sublayers: Annotated[
        bool, Parameter(help="keep the stream after attention too", negative=())
    ] = False,
    states: Annotated[
        bool, Parameter(help="write the tokens themselves, not only what is measured")
    ] = True,
    batch: Annotated[int, Parameter(help="prompts run at once")] = 1,
    dtype: Annotated[
        str | None, Parameter(help="float32, float64, bfloat16 or float16 [default: float32]")
    ] = None,
    device: Annotated[
        str | None, Parameter(help="where torch runs [default: a GPU if there is one]")
    ] = None,
    seed: Annotated[int, Parameter(help="of the choice of texts and of fresh weights")] = 0,
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
    report = report or (None if out else Path("probe.html"))
    places = [] if out is None else [_place(out, k) for k in range(len(names))]
    there = {place: replaceable(place, NETCDF) for place in places}
    if report is not None:
        there[report] = replaceable(report, ".html")
    keep_compiled()
    from tokenflock import probing

    shared = {
        "layers": None if layers is None else wholes(layers, "--layers"),
        "normalise": normalise,
        "special": special,
        "first": first,
        "length": length,
        "attention": attention,
        "sublayers": sublayers,
        "batch": batch,
        "dtype": dtype,
        "device": device,
        "heads": heads,
        "entropy": report is not None,
        "observe": probing.survey(),
    }
    results, chosen = [], []
    for k, name in enumerate(names):
        chosen.append(_texts(probing, name, text, string, dataset, prompts, minimum, seed, length))
        place = places[k] if places else None
        results.append(
            _probed(probing, name, chosen[-1], depth, states and out is not None, place, shared)
        )
        if place is not None:
            saved(place, there[place])
    if untrained:
        results.append(
            _probed(
                probing,
                names[0],
                chosen[0],
                depth,
                False,
                None,
                shared | {"untrained": True, "seed": seed},
            )
        )
    for one in results:
        _tell(one)
    if report is not None:
        beside = _beside(probing, names[0], chosen[0], depth, length) if follow else ()
        from tokenflock.pages import probe as probe_report

        probe_report.write(results, report, *beside)
        saved(report, there[report])


def _models(model: str | None, compare: tuple[str, str] | None) -> list[str]:
    if (model is None) == (compare is None):
        raise UserError("name one model (tokenflock probe ./bert), or two with --compare A B")
    return [model] if model is not None else list(compare)


def _texts(
    probing,
    model: str,
    text,
    string,
    dataset,
    prompts: int,
    minimum: int | None,
    seed: int,
    length: int | None,
) -> list[Any]:
    """The texts to run on: the source that was named, else what lies beside the model, else
    Python's manual.
    """
    if sum(one is not None for one in (text, string, dataset)) > 1:
        raise UserError("give one of --text, --string and --dataset")
    source = probing.texts
    if string is not None:
        return [source.Text(string)]
    found, kind = _source(source, model, text, dataset)
    loaded = probing.load(model)
    limit = min(length or 512, loaded.room)
    return probing.choose(
        loaded, found, prompts, _MINIMUM[kind] if minimum is None else minimum, seed, limit
    )


def _source(source, model: str, text: str | None, dataset: str | None) -> tuple[list[Any], str]:
    if dataset is not None:
        return source.wikitext(), "wikitext"
    if text is not None:
        return (source.from_stdin() if text == "-" else source.from_file(text)), "file"
    lying = source.beside(model) if Path(model).is_dir() else None
    if lying is not None:
        return lying, "file"
    say("no text was named: taking the manual of Python")
    return source.built_in(), "built-in"


def _probed(
    probing,
    name: str,
    texts: list[Any],
    depth: int | None,
    states: bool,
    out: Path | None,
    shared: dict[str, Any],
):
    with progress(f"probing {name}") as told:
        return probing.probe(name, texts, depth, states=states, out=out, progress=told, **shared)


def _place(out: Path, k: int) -> Path:
    """Where the result of model number k goes."""
    return out if k == 0 else out.with_stem(f"{out.stem}-{k + 1}")


def _beside(
    probing, name: str, texts: list[Any], depth: int | None, length: int | None
) -> tuple[Any, Any]:
    """The idealised runs, and the matrices that they are made of."""
    with progress("following the idealised model") as told:
        return probing.follow(
            name, texts, depth, length=length, progress=told
        ), probing.particle_system(name)


def _tell(result) -> None:
    """What happened, in a line or two."""
    first, last = result.isel(layer=0), result.isel(layer=-1)
    ends = {
        name: [float(end[name].mean()) for end in (first, last)]
        for name in ("mean_cosine", "pair_density", "cluster_count")
    }
    words = {
        "mean_cosine": "mean cosine {:.3f}, {:.3f}",
        "pair_density": "share of pairs above 0.9 {:.3f}, {:.3f}",
        "cluster_count": "clusters {:.0f}, {:.0f}",
    }
    told = "; ".join(words[name].format(*ends[name]) for name in words)
    where = f"at layers {int(first.layer)} and {int(last.layer)}"
    prompts = counted(result.sizes["prompt"], "prompt")
    say(f", {prompts}, {where}: {told}", title=result.attrs["title"])

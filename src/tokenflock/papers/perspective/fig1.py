"""Inner products of a trained ALBERT, layer by layer.

A trained ALBERT (albert-xlarge-v2 in print: 24 passes of one layer) reads prompts of more than 300
tokens, cut to 512; the cosine of every two tokens $i != j$ is counted at each layer, and the same
layer is then passed as many times again. The text is what lies beside the model (prompts.json, .csv
or .txt in its folder), else WikiText-103 where the hub can be reached, else the manual of Python;
prompts are drawn with seed 0, and bands are over prompts.

Choices that were made in print without being said are run side by side: the diagonal $i = j$ left
in the histograms, and the second half (passes beyond the model's own) run with the trained matrices
cut into one head. A third run has fresh weights.

Tokens that hardly move are no clusters: a growth counts where it would be seen in print, by a tenth
of the way to 1 for the mean, and by one pair in a hundred for the mass at 1, five times what the
diagonal puts there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from tokenflock.errors import UserError
from tokenflock.observables import ClusterCount, Histogram, MeanCosine, PairDensity
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.probing.options import Recording, Variant
from tokenflock.probing.surveying import NEAR
from tokenflock.reproduction.claim import Claim, Interval, NotRun, at_least, near
from tokenflock.reproduction.scale import Scale
from tokenflock.verbs.measure import measure

SOURCE = "Figure 1"
CAPTION = (
    "See the distribution of the cosines $⟨x_i, x_j⟩$ of all pairs of tokens (density of pairs)"
    " move towards 1 from layer to layer of a trained model."
)
MODEL = "albert/albert-xlarge-v2"
DEPTH, HEADS = 24, 16  # of the published model
MINIMUM, LENGTH, BINS = 300, 512, 200
# Print has "growing mass at 1", "further enhanced" by as many passes again, in panels from -0.3 to
# 1.05. A growth that can be seen there: a tenth of the way to 1, and five times the peak of 1/512
# that the diagonal puts into the last bin at every layer.
WAY, MASS = 0.1, 0.01
VARIANTS = {
    "as trained": Variant(),
    "one head": Variant(heads=1),
    "untrained": Variant(untrained=True),
}
COLOURS = {"as trained": 0, "one head": 1, "untrained": 3}


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    model, probing = _model(scale.model)
    try:
        loaded = probing.load(model)
        texts, source = _texts(probing, model)
        facts = loaded.facts
        depth = facts.depth
        texts = probing.choose(
            loaded,
            texts,
            scale.pick(quick=4, paper=32),
            MINIMUM,
            seed=0,
            length=min(LENGTH, facts.room),
        )
        report = _report(scale.progress, 4)
        runs = [
            probing.probe(
                model,
                texts,
                2 * depth,
                variant=variant,
                record=Recording(states=False),
                observe=_observables(),
                batch=1,
                progress=report(k),
            )
            for k, variant in enumerate(VARIANTS.values())
        ]
        ends = probing.probe(
            model,
            texts[:2],
            2 * depth,
            record=Recording(layers=[0, depth, 2 * depth]),
            batch=1,
            progress=report(3),
        )
    except UserError as error:
        raise NotRun(str(error)) from None
    data = _joined(runs, ends)
    tokens = int((data.w > 0).sum("token").mean())
    return data.assign_attrs(
        model=facts.name,
        depth=depth,
        heads=facts.heads,
        text=source,
        setting=(
            f"{facts.name} ($d = {facts.width}$, {facts.heads} heads, {depth} passes of one"
            f" layer, then {2 * depth}), {len(texts)} prompts of {tokens} tokens from {source},"
            " seed 0"
        ),
    )


def _joined(runs: list[xr.Dataset], ends: xr.Dataset) -> xr.Dataset:
    """The statistics of all variants, and what the choices of the paper change at the ends."""
    measured = [observable.name for observable in _observables()]
    variants = xr.concat(
        [run[measured] for run in runs],
        "variant",
        coords="minimal",
        compat="override",
        join="override",
    )
    return (
        runs[0]
        .drop_vars([*measured, "word"])
        .assign(variants)
        .assign(_choices(ends))
        .assign_coords(variant=list(VARIANTS))
    )


def _model(model: str | None):
    """The model to run and the room that runs it, or the reason why not."""
    from tokenflock import probing

    needs = (
        f"needs albert-xlarge-v2; where there is a network, run: hf download {MODEL} --local-dir"
        " albert-xlarge-v2, bring the folder, and write: tokenflock reproduce perspective/fig1"
        " --model albert-xlarge-v2"
    )
    try:
        known = model is not None or probing.cached(MODEL)
    except UserError as error:
        raise NotRun(f"{error}; it also {needs}") from None
    if not known:
        raise NotRun(needs)
    return model or MODEL, probing


def _texts(probing, model: str):
    """Texts and the words for where they come from."""
    lying = probing.texts.beside(model) if Path(model).is_dir() else None
    if lying is not None:
        return lying, "the prompts beside the model"
    try:
        return probing.texts.wikitext(), "the test split of WikiText-103"
    except UserError:
        return probing.texts.built_in(), "the manual of Python"


def _observables() -> list:
    return [MeanCosine(), PairDensity(delta=NEAR), ClusterCount(delta=NEAR), Histogram(bins=BINS)]


def _choices(ends: xr.Dataset) -> dict[str, xr.DataArray]:
    """What the diagonal and the special tokens do at layers 0, L and 2L."""
    ends = ends.rename(layer="end")
    diagonal = measure(ends, Histogram(bins=BINS, diagonal=True)).histogram
    plain = (ends.w > 0) & (ends.special == 0)
    without = ends.assign(w=plain / plain.sum("token"))
    return {
        "histogram_with_diagonal": diagonal,
        "mean_cosine_without_special": measure(without, MeanCosine()).mean_cosine,
        "specials": ends.special.sum("token"),
    }


def _report(
    progress: Callable[[int, int], None] | None, parts: int
) -> Callable[[int], Callable[[float], None] | None]:
    """Progress of one part among several."""

    def part(k: int) -> Callable[[float], None] | None:
        if (report := progress) is None:
            return None
        return lambda share: report(round(100 * (k + share)), 100 * parts)

    return part


def draw(data: xr.Dataset) -> dict[str, Figure]:
    """The picture."""
    return {"": _histograms(data), "choices": _comparison(data)}


def shown(depth: int) -> list[int]:
    """The layers in print (0, 1, 21-24, then 25-27, 46-48), for a model of any depth."""
    return [
        0,
        1,
        *range(depth - 3, depth + 1),
        *range(depth + 1, depth + 4),
        *range(2 * depth - 2, 2 * depth + 1),
    ]


def _histograms(data: xr.Dataset) -> Figure:
    figure, axes = panels(2, 6, size=(1.75, 1.75), sharex=True, sharey=True)
    own = data.sel(variant="as trained")
    with look(figure) as theme:
        for ax, layer in zip(axes, shown(data.attrs["depth"])):
            _band(ax, own.histogram.sel(layer=layer), theme.palette[0], own.bin.values)
            mean = float(own.mean_cosine.sel(layer=layer).mean())
            ax.axvline(mean, color=theme.palette[2], lw=0.9)
            ax.set_title(f"layer {layer},  mean {mean:.2f}")
            ax.set(xlim=(-0.4, 1.05))
        for ax in axes[6:]:
            ax.set_xlabel(r"$\langle x_i,\,x_j\rangle$")
        for ax in axes[::6]:
            ax.set_ylabel("density of pairs")
        figure.suptitle(
            f"{data.attrs['model']}: cosines of tokens i ≠ j; above its own layers, below the same"
            " layer passed on",
            x=0.012,
            ha="left",
        )
    return figure


def _band(ax: Axes, shares: xr.DataArray, colour: str, bins: np.ndarray) -> None:
    """Mean over prompts as a line, their range as a band."""
    width = bins[1] - bins[0]
    edges = np.append(bins - width / 2, bins[-1] + width / 2)
    density = shares / width
    ax.stairs(
        density.max("prompt"),
        edges,
        baseline=density.min("prompt").values,
        fill=True,
        color=colour,
        alpha=0.3,
        lw=0,
    )
    ax.stairs(density.mean("prompt"), edges, color=colour, lw=0.9)


def _comparison(data: xr.Dataset) -> Figure:
    figure, axes = panels(1, 3, size=(3.1, 2.6))
    depth = data.attrs["depth"]
    with look(figure) as theme:
        words = (
            ("mean_cosine", "mean cosine of pairs"),
            ("pair_density", f"share of pairs above {1 - NEAR:g}"),
        )
        for ax, (name, label) in zip(axes, words):
            for variant, place in COLOURS.items():
                curves = data[name].sel(variant=variant)
                ax.plot(
                    data.layer, curves.mean("prompt"), color=theme.palette[place], label=variant
                )
                ax.fill_between(
                    data.layer,
                    curves.min("prompt"),
                    curves.max("prompt"),
                    color=theme.palette[place],
                    alpha=0.25,
                    lw=0,
                )
            ax.axvline(depth, color=theme.faint, lw=0.8, zorder=0)
            ax.set(xlabel="layer", ylabel=label, xlim=(0, 2 * depth))
        axes[0].legend(loc="best")
        for variant in ("as trained", "one head"):
            _band(
                axes[2],
                data.histogram.sel(variant=variant, layer=2 * depth),
                theme.palette[COLOURS[variant]],
                data.bin.values,
            )
        with_diagonal = data.histogram_with_diagonal.sel(end=2 * depth).mean("prompt") / (2 / BINS)
        axes[2].plot(
            data.bin[-1],
            with_diagonal[-1],
            "x",
            color=theme.palette[2],
            label="with the diagonal",
            clip_on=False,
        )
        axes[2].set(
            xlabel=r"$\langle x_i,\,x_j\rangle$", ylabel="density of pairs", xlim=(-0.4, 1.05)
        )
        axes[2].set_title(f"after {2 * depth} passes")
        axes[2].legend(loc="upper left")
    return figure


def claims(data: xr.Dataset | None) -> list[Claim]:
    """What the numbers say."""
    who = "albert-xlarge-v2" if data is None else data.attrs["model"]
    depth = DEPTH if data is None else data.attrs["depth"]
    heads = HEADS if data is None else data.attrs["heads"]
    own, on = f"from layer 0 to layer {depth}", f"from {depth} to {2 * depth} passes of its layer"
    printed = (
        "The published notebook runs the passes beyond the model's own with its matrices cut into"
        f" one head, not {heads}."
    )
    printed = printed if heads == HEADS else ""
    mean = f"the mean cosine of the tokens of {who} goes at least a tenth of the way to 1"
    share = f"the share of pairs of {who} above cosine {1 - NEAR:g} grows by at least {MASS:g}"
    return [
        _towards_one(data, "mean", f"{mean} {own}", 0, depth),
        _growth(data, "near-one", f"{share} {own}", 0, depth),
        _towards_one(data, "mean-on", f"{mean} {on}", depth, 2 * depth, printed),
        _growth(data, "near-one-on", f"{share} {on}", depth, 2 * depth, printed),
        _diagonal(data, who),
    ]


def _towards_one(
    data: xr.Dataset | None, name: str, statement: str, start: int, end: int, erratum: str = ""
) -> Claim:
    """The share of the way to 1 that the mean cosine goes between two layers."""
    statement += " (share of the way, mean over prompts)"
    if data is None:
        return Claim(name, statement, SOURCE, None, at_least(WAY), erratum=erratum)
    cosine = data.mean_cosine.sel(variant="as trained")
    first, last = cosine.sel(layer=start).values, cosine.sel(layer=end).values
    return Claim(
        name,
        statement,
        SOURCE,
        *_mean((last - first) / (1 - first), at_least(WAY)),
        _ends(data, "mean_cosine", start, end) + _special(data, end),
        erratum,
    )


def _growth(
    data: xr.Dataset | None, name: str, statement: str, start: int, end: int, erratum: str = ""
) -> Claim:
    """How much the share of near pairs grows between two layers."""
    statement += " (growth, mean over prompts)"
    if data is None:
        return Claim(name, statement, SOURCE, None, at_least(MASS), erratum=erratum)
    near_one = data.pair_density.sel(variant="as trained")
    grown = near_one.sel(layer=end).values - near_one.sel(layer=start).values
    why = f"; the diagonal alone, counted in print, is {float(1 / _tokens(data).mean()):.4f}"
    return Claim(
        name,
        statement,
        SOURCE,
        *_mean(grown, at_least(MASS)),
        _ends(data, "pair_density", start, end) + why,
        erratum,
    )


def _mean(values: np.ndarray, interval: Interval) -> tuple[float, Interval, float | None]:
    """A mean over prompts, where it must lie, and its standard error."""
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return float(values.mean()), interval, error


def _ends(data: xr.Dataset, variable: str, start: int, end: int) -> str:
    """A statistic at two layers, and at the second one for each variant, in words."""
    first = float(data[variable].sel(variant="as trained", layer=start).mean())
    last = data[variable].sel(layer=end).mean("prompt")
    values = (f"{float(last.sel(variant=name)):.3f} {name}" for name in data.variant.values)
    return f"{first:.3f} at layer {start}; at layer {end} it is {', '.join(values)}"


def _special(data: xr.Dataset, layer: int) -> str:
    """What leaving out special tokens does to the mean."""
    if not int(data.specials.max()):
        return ""
    return (
        f"; {float(data.mean_cosine_without_special.sel(end=layer).mean()):.3f} without special"
        " tokens"
    )


def _diagonal(data: xr.Dataset | None, who: str) -> Claim:
    statement = (
        f"counting $i = j$ too adds to the histogram of {who} a peak at one of $1/n$ of all"
        " pairs, whatever the tokens do"
    )
    erratum = "The histograms are captioned $i ≠ j$ but count the diagonal $i = j$ as well."
    if data is None:
        return Claim("diagonal", statement, SOURCE, None, near(1, 0.01), erratum=erratum)
    plain = data.histogram.sel(variant="as trained", layer=0).isel(bin=-1)
    extra = data.histogram_with_diagonal.sel(end=0).isel(bin=-1) - plain * (1 - 1 / _tokens(data))
    note = (
        "the peak as a multiple of 1/n; at layer 0 it is all there is in the last bin"
        f" ({float(plain.mean()):.4f} without it)"
    )
    return Claim(
        "diagonal",
        statement,
        SOURCE,
        float((extra * _tokens(data)).mean()),
        near(1, 0.01),
        note=note,
        erratum=erratum,
    )


def _tokens(data: xr.Dataset) -> xr.DataArray:
    return (data.w > 0).sum("token")

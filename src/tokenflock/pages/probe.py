"""The report of probed models: one page with everything inside."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.errors import require
from tokenflock.files import whole, writable
from tokenflock.pages import html as pages
from tokenflock.plots import look, panels, save_figure, style
from tokenflock.plots.bands import band
from tokenflock.plots.styles import ThemeName
from tokenflock.reproduction.mathematics import mathml

_COSINE = r"$\langle x_i,\,x_j\rangle/|x_i||x_j|$"
_LAYERS = (
    "See whether tokens gather on their way through the layers: lines are means over prompts, bands"
    " their range; a pair is near where its cosine is above 0.9, and clusters are chains of such"
    " pairs."
)
_COSINES = (
    "See the cosines $⟨x_i, x_j⟩/|x_i||x_j|$ of pairs $i ≠ j$ move towards 1 where tokens gather:"
    " bands are the range over prompts."
)
_SYSTEMS_SEEN = (
    "See how much of the model each idealisation keeps: the distance of histograms is 0 and the"
    " alignment 1 where nothing is lost."
)
_SPECTRA = (
    "See which directions values amplify (right of the line), and how sharp attention is: the"
    " effective $β$ of each head."
)
_CURVES = {
    "mean_cosine": "mean cosine of pairs",
    "pair_density": "share of pairs above 0.9",
    "cluster_count": "clusters (cosine 0.9)",
    "effective_rank": "effective rank",
    "attention_entropy": "entropy of attention (nats)",
}
_SYSTEMS = {
    "model": "the model",
    "attention": "attention alone",
    "feed-forward": "with feed-forward part",
    "normalisation": "with true normalisation",
    "everything": "everything",
}


def write(
    results: Sequence[xr.Dataset],
    path: str | os.PathLike[str],
    followed: xr.Dataset | None = None,
    matrices: xr.Dataset | None = None,
) -> Path:
    """Write the page of one probed model, or of several side by side.

    Args:
      results: probes with what `survey` measures (`tokenflock.probing.probe(...,
        observe=survey())`).
      path: the .html file.
      followed: the idealised runs of the first model (`tokenflock.probing.follow`).
      matrices: its matrices (`tokenflock.probing.particle_system`).
    """
    path = Path(path)
    writable(path)
    require(
        len(results) > 0 and all("histogram" in result for result in results),
        "results",
        "probes with observe=survey()",
        len(results),
    )
    names = [str(result.attrs["model"]) for result in results]
    title, whose = " and ".join(names), "its" if len(names) == 1 else "their"
    with tempfile.TemporaryDirectory() as folder:
        drawn = _Drawn(Path(folder))
        body = [
            f"<h1>{escape(title)}: do {whose} tokens cluster?</h1>",
            f"<p class='lead'>{' '.join(_headline(result) for result in results)}</p>",
            drawn.picture(lambda: curves(results), _LAYERS, _shown(results)),
            f"<p class='soft'>{mathml(_sentence(results[0]))}</p>",
            "<h2>The first layer and the last</h2>",
            _table(results),
            "<h2>Distribution of cosines</h2>",
        ]
        for result, name in zip(results, names):
            drawing = partial(histograms, result)
            shown = (
                f"Histograms of cosines of pairs of tokens of {name}, at layers from first to last."
            )
            body += [f"<h3>{escape(name)}</h3>"] if len(results) > 1 else []
            body += [drawn.picture(drawing, _COSINES, shown)]
        if followed is not None:
            body += _followed(followed, drawn)
        if matrices is not None:
            body += _matrices(matrices, drawn)
        body += ["<h2>What ran</h2>", *(_recipe(result) for result in results)]
    with whole(path) as part:
        part.write_text(pages.page(f"{title}, probed", "\n".join(body)), encoding="utf-8")
    return path


def curves(results: Sequence[xr.Dataset]):
    """Every statistic against layer, one colour for each model."""
    names = [name for name in _CURVES if all(name in result for result in results)]
    count = len(names) + ("energies" in results[0])
    figure, axes = panels((count + 2) // 3, 3, size=(3.2, 2.5))
    with look(figure) as theme:
        for ax, name in zip(axes, names):
            for colour, result in zip(theme.palette, results):
                band(
                    ax, _by_layer(result[name], result), "layer", colour, str(result.attrs["model"])
                )
            _over_layers(ax, _CURVES[name])
        if "energies" in results[0]:
            _energies(axes[len(names)], results, theme)
        if len(results) > 1:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
        for ax in axes[count:]:
            ax.set_axis_off()
    return figure


def histograms(result: xr.Dataset, count: int = 8):
    """The distribution of cosines of pairs i != j at some layers, bands over prompts."""
    layers = result.layer.values
    chosen = layers[
        np.unique(np.linspace(0, len(layers) - 1, min(count, len(layers))).round().astype(int))
    ]
    figure, axes = panels((len(chosen) + 3) // 4, 4, size=(2.3, 1.9))
    width = float(result.bin[1] - result.bin[0])
    edges = np.append(result.bin.values - width / 2, result.bin.values[-1] + width / 2)
    low = min(-0.1, float(result.bin.where(result.histogram.max(["prompt", "layer"]) > 1e-4).min()))
    with look(figure) as theme:
        for ax, layer in zip(axes, chosen):
            density = result.histogram.sel(layer=layer) / width
            ax.stairs(
                density.max("prompt"),
                edges,
                baseline=density.min("prompt").values,
                fill=True,
                color=theme.palette[0],
                alpha=0.3,
                lw=0,
            )
            ax.stairs(density.mean("prompt"), edges, color=theme.palette[0], lw=0.9)
            ax.set(xlim=(low, 1.02))
            ax.set_title(f"layer {layer}")
        for ax in axes[max(0, len(chosen) - 4) :]:
            ax.set_xlabel(_COSINE)
        for ax in axes[::4]:
            ax.set_ylabel("density of pairs")
        for ax in axes[len(chosen) :]:
            ax.set_axis_off()
    return figure


def systems(followed: xr.Dataset):
    """A model and its idealisations: mean cosine, clusters, distance of histograms, alignment of
    tokens.
    """
    words = {
        "mean_cosine": "mean cosine of pairs",
        "cluster_count": "clusters (cosine 0.9)",
        "histogram_distance": "distance of histograms",
        "alignment": "alignment with the model",
    }
    figure, axes = panels(2, 2, size=(3.6, 2.6))
    with look(figure) as theme:
        for ax, (name, label) in zip(axes, words.items()):
            for k, system in enumerate(followed.system.values):
                dash = "--" if system == "everything" else "-"
                band(
                    ax,
                    followed[name].sel(system=system),
                    "layer",
                    theme.palette[k],
                    _SYSTEMS[str(system)],
                    dash,
                )
            _over_layers(ax, label)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return figure


def spectra(matrices: xr.Dataset):
    """Eigenvalues of the values sum_h O_h V_h and of Q_h^T K_h, and the inverse temperatures of the
    heads.
    """
    figure, (left, middle, right) = panels(1, 3, size=(3.0, 2.7))
    with look(figure) as theme:
        ends = [matrices.isel(block=k) for k in sorted({0, matrices.sizes["block"] - 1})]
        for ax, name in ((left, "values_of_all"), (middle, "attraction")):
            for colour, block in zip(theme.palette, ends):
                real, imaginary = (
                    block[name].sel(part=part).values.ravel() for part in ("real", "imaginary")
                )
                ax.plot(real, imaginary, ".", ms=3, color=colour, alpha=0.6)
            ax.axvline(0, color=theme.faint, lw=0.8, zorder=0)
            ax.set(xlabel="real part", ylabel="imaginary part")
        left.set_title(r"eigenvalues of $\sum_h O_h V_h$")
        middle.set_title(r"eigenvalues of $Q_h^\top K_h$")
        block, beta = np.broadcast_arrays(
            np.arange(1, matrices.sizes["block"] + 1)[:, None], matrices.beta.values
        )
        right.plot(block.ravel(), beta.ravel(), "o", ms=3, color=theme.palette[0], alpha=0.7)
        right.set(xlabel="block", ylabel=r"effective $\beta$ of each head")
        if beta.max() > 10 * beta.min():
            right.set_yscale("log")
        else:
            right.set_ylim(0, None)
        right.locator_params(axis="x", integer=True)
    return figure


class _Drawn:
    """Figures on their way into the page, each for light and for dark screens."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def picture(self, draw: Callable[[], Any], caption: str, alt: str) -> str:
        self.count += 1
        places = []
        themes: dict[ThemeName, int] = {"light": pages.RESOLUTION, "dark": 150}
        for theme, dots in themes.items():
            with style(theme, shown=False):
                place = self.folder / f"{self.count}-{theme}.png"
                places.append(save_figure(draw(), place, dpi=dots))
        picture = pages.picture(places[0], alt, places[1])
        return f"<figure>{picture}<figcaption>{mathml(caption)}</figcaption></figure>"


def _by_layer(values: xr.DataArray, result: xr.Dataset) -> xr.DataArray:
    """One number for each prompt and layer: entropy is averaged over heads and over the tokens that
    count.
    """
    if "head" not in values.dims:
        return values
    return values.mean("head").where(result.w > 0).mean("token").dropna("layer")


def _energies(ax, results: Sequence[xr.Dataset], theme) -> None:
    for colour, result in zip(theme.palette, results):
        for dash, beta in zip(("-", "--", ":", "-."), result.beta.values):
            label = rf"$\beta$ = {beta:g}" if result is results[0] else "_"
            band(ax, result.energies.sel(beta=beta), "layer", colour, label, dash)
    _over_layers(ax, "energy (one at consensus)")
    ax.set_ylim(0, 1.04)
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # curves may be anywhere below
    ax.legend(ncols=results[0].sizes["beta"], handlelength=2.4, columnspacing=0.8, **above)


def _over_layers(ax, label: str) -> None:
    """Axes of a number against layers, which are whole."""
    ax.set(xlabel="layer", ylabel=label)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _headline(result: xr.Dataset) -> str:
    """What came out, in a sentence: the mean cosine and the clusters, from first to last layer."""
    first, last = (result.isel(layer=k) for k in (0, -1))
    name = str(result.attrs["model"]).replace("$", "$$")
    cosines = [float(part.mean_cosine.mean()) for part in (first, last)]
    counts = [float(part.cluster_count.mean()) for part in (first, last)]
    verb = "rises" if cosines[1] > cosines[0] else "falls"
    return mathml(
        f"From the first to the last of {result.sizes['layer']} states of {name} the mean cosine of"
        f" two tokens {verb} from ${cosines[0]:.2f}$ to ${cosines[1]:.2f}$ (1 is one cluster), and"
        f" the number of clusters goes from ${round(counts[0], 1):g}$ to ${round(counts[1], 1):g}$."
    )


def _shown(results: Sequence[xr.Dataset]) -> str:
    """What the curves show, for those who do not see them."""
    ends = "; ".join(
        f"{result.attrs['model']}: mean cosine {float(result.mean_cosine.isel(layer=0).mean()):.2f}"
        f" at first, {float(result.mean_cosine.isel(layer=-1).mean()):.2f} at last"
        for result in results
    )
    return f"Statistics of the tokens against the layer. {ends}."


def _table(results: Sequence[xr.Dataset]) -> str:
    head = (
        "<tr><th>model</th><th>layer</th>"
        + "".join(f"<th>{words}</th>" for words in _CURVES.values())
        + "</tr>"
    )
    rows = [_row(result, layer) for result in results for layer in result.layer.values[[0, -1]]]
    return f"<div class='scroll'><table>{head}{''.join(rows)}</table></div>"


def _row(result: xr.Dataset, layer: int) -> str:
    cells = []
    for name in _CURVES:
        values = _by_layer(result[name], result) if name in result else None
        if values is None or layer not in values.layer.values:
            cells.append("")
        else:
            cells.append(_number(values.sel(layer=layer).values))
    return (
        f"<tr><td>{escape(str(result.attrs['model']))}</td><td>{layer}</td>"
        + "".join(f"<td class='number'>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _number(values: np.ndarray) -> str:
    """Mean over prompts with two digits of its standard error.

    >>> _number(np.array([80.0, 104.0])), _number(np.array([0.25, 0.25]))
    ('92 ± 12', '0.25')
    >>> _number(np.array([1.0, 1 - 1e-15]))
    '1'
    """
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0
    if not error > 1e-9 * max(1, abs(values.mean())):  # what is left is rounding
        return f"{values.mean():.4g}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{values.mean():.{places}f} ± {error:.{places}f}"


def _followed(followed: xr.Dataset, drawn: _Drawn) -> list[str]:
    last = followed.isel(layer=-1).mean("prompt")
    rows = "".join(
        f"<tr><td>{escape(_SYSTEMS[str(system)])}</td>"
        + "".join(
            f"<td class='number'>{float(last[name].sel(system=system)):.4g}</td>" for name in _KEPT
        )
        + "</tr>"
        for system in followed.system.values
    )
    head = (
        "<tr><th>at the last layer</th>"
        + "".join(f"<th>{name.replace('_', ' ')}</th>" for name in _KEPT)
        + "</tr>"
    )
    return [
        "<h2>The model as a particle system</h2>",
        (
            "<p>Its own matrices, run by the dynamics of the theory from its own embeddings, with"
            " less and less left out.</p>"
        ),
        drawn.picture(
            lambda: systems(followed), _SYSTEMS_SEEN, "Curves of the model and its idealisations."
        ),
        f"<div class='scroll'><table>{head}{rows}</table></div>",
    ]


def _matrices(matrices: xr.Dataset, drawn: _Drawn) -> list[str]:
    beta, radius = matrices.beta.values, matrices.radius.values
    positive = float((matrices.values_of_all.sel(part="real") > 0).mean())
    facts = (
        f"Tokens have length {radius.min():.3g} to {radius.max():.3g}; the effective $β$ of its"
        f" heads is {beta.min():.3g} to {beta.max():.3g} (median {np.median(beta):.3g});"
        f" {100 * positive:.0f} % of the eigenvalues of the values have a positive real part."
        " Colours: the first block, then the last."
    )
    return [
        "<h2>Its matrices</h2>",
        f"<p>{mathml(facts)}</p>",
        drawn.picture(
            lambda: spectra(matrices), _SPECTRA, "Eigenvalues of its matrices in the complex plane."
        ),
    ]


_KEPT = ("mean_cosine", "pair_density", "cluster_count", "histogram_distance", "alignment")


def _sentence(result: xr.Dataset) -> str:
    recipe = json.loads(result.attrs["recipe"])
    counted = (result.w > 0).sum("token")
    fewest, most = int(counted.min()), int(counted.max())
    tokens = f"{fewest} to {most}" if fewest < most else f"{most}"
    special = "count" if recipe["special"] else "do not count"
    return (
        f"{result.sizes['prompt']} prompts of {tokens} tokens; {recipe['architecture']}, $d ="
        f" {recipe['d']}$, {recipe['heads']} heads, {recipe['depth']} layers. Pairs $i ≠ j$;"
        f" padding never counts; special tokens {special}."
    )


def _recipe(result: xr.Dataset) -> str:
    recipe = json.dumps(
        {
            key: value
            for key, value in json.loads(result.attrs["recipe"]).items()
            if key != "observe"
        },
        indent=1,
    )
    summary = escape(str(result.attrs["model"]))
    return f"<details><summary>{summary}</summary><pre>{escape(recipe)}</pre></details>"

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
from tokenflock.pages.probe_figures import (
    CURVES,
    SYSTEMS,
    by_layer,
    curves,
    histograms,
    spectra,
    systems,
)
from tokenflock.plots import save_figure, style
from tokenflock.plots.styles import ThemeName
from tokenflock.reproduction.mathematics import mathml

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
        + "".join(f"<th>{words}</th>" for words in CURVES.values())
        + "</tr>"
    )
    rows = [_row(result, layer) for result in results for layer in result.layer.values[[0, -1]]]
    return f"<div class='scroll'><table>{head}{''.join(rows)}</table></div>"


def _row(result: xr.Dataset, layer: int) -> str:
    cells = []
    for name in CURVES:
        values = by_layer(result[name], result) if name in result else None
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
        f"<tr><td>{escape(SYSTEMS[str(system)])}</td>"
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

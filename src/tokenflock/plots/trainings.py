"""What tokens do while a model learns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from tokenflock.errors import require
from tokenflock.plots._story import literal
from tokenflock.plots.bands import band
from tokenflock.plots.styles import look, note_missing, panels

_SHOWN = {
    "mean_cosine": "mean cosine of tokens",
    "cluster_count": "clusters (cosine ≥ 0.9)",
    "effective_rank": "effective rank",
}


def training(
    result: xr.Dataset, *, axes: Sequence[Axes] | None = None, title: str = "", legend: bool = True
) -> Figure | SubFigure:
    """Mean cosine, clusters and effective rank of each layer at steps of a training, which are
    logarithmic after the tenth.

    Lines are means over prompts (or seeds), bands their range.

    Args:
      result: `watch.nc`, which `tokenflock gpt train --watch` writes: variables with axes `step`,
        `layer` and one more.
      axes: three axes to draw in; a new figure unless given.
      title: above the first of them.
      legend: name the layers.
    """
    held = {"step", "layer"} <= set(map(str, result.sizes)) and all(
        name in result for name in _SHOWN
    )
    require(
        held,
        "result",
        f"a training: {', '.join(_SHOWN)} along step and layer",
        sorted(map(str, result.data_vars)),
    )
    with look(axes[0] if axes is not None else None) as theme:
        figure, axes = panels(1, 3, size=(2.9, 2.5)) if axes is None else (axes[0].figure, axes)
        shades = theme.sequential(np.linspace(0.35, 0.95, result.sizes["layer"]))
        for ax, (name, label) in zip(axes, _SHOWN.items()):
            note_missing(ax, name, result[name])
            for layer, colour in zip(result.layer.values, shades):
                band(ax, result[name].sel(layer=layer), "step", colour, f"layer {layer}")
            ax.set_xscale("symlog", linthresh=10, linscale=0.5)
            ax.set(
                xlim=(0, max(int(result.step[-1]), 1)),
                ylim=(min(0, float(result[name].min())), 1.06 * float(result[name].max())),
            )
            ax.set(xlabel="step of the training", ylabel=label)
        axes[0].set_title(title or literal(result.attrs.get("title", "")))
        if legend:
            named = axes[0].get_legend_handles_labels()
            figure.legend(*named, loc="outside lower center", ncols=min(7, result.sizes["layer"]))
    return figure

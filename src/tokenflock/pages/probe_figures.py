"""The figures of the report of probed models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from tokenflock.plots import look, panels
from tokenflock.plots.bands import band

_COSINE = r"$\langle x_i,\,x_j\rangle/|x_i||x_j|$"
CURVES = {
    "mean_cosine": "mean cosine of pairs",
    "pair_density": "share of pairs above 0.9",
    "cluster_count": "clusters (cosine 0.9)",
    "effective_rank": "effective rank",
    "attention_entropy": "entropy of attention (nats)",
}
SYSTEMS = {
    "model": "the model",
    "attention": "attention alone",
    "feed-forward": "with feed-forward part",
    "normalisation": "with true normalisation",
    "everything": "everything",
}


def curves(results: Sequence[xr.Dataset]):
    """Every statistic against layer, one colour for each model."""
    names = [name for name in CURVES if all(name in result for result in results)]
    count = len(names) + ("energies" in results[0])
    figure, axes = panels((count + 2) // 3, 3, size=(3.2, 2.5))
    with look(figure) as theme:
        for ax, name in zip(axes, names):
            for colour, result in zip(theme.palette, results):
                band(
                    ax, by_layer(result[name], result), "layer", colour, str(result.attrs["model"])
                )
            _over_layers(ax, CURVES[name])
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
                    SYSTEMS[str(system)],
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


def by_layer(values: xr.DataArray, result: xr.Dataset) -> xr.DataArray:
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

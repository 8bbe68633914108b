"""Make the pictures of the README and of docs/real-models.md anew, from the public interface alone.

    python tools/pictures.py sphere                       docs/images/sphere.gif
    python tools/pictures.py phase                        docs/images/phase-1024.png, -dark.png
    python tools/pictures.py models ./rxnmapper-albert benchmarks/data/reactions.json
                                                          docs/images/collapse.png, -dark.png

The last one needs `tokenflock[models]` and a folder with an ALBERT. It takes a few minutes, the
other two less than one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock import plots, probing
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount, Energy, MeanCosine
from tokenflock.probing import Recording, Variant
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SEEDS = 3  # of fresh weights
DEPTH = 96  # passes, eight times the depth of the model
NEAR = 0.1  # tokens of cosine above 0.9 are one cluster


def sphere() -> None:
    """Tokens on the sphere: many clusters at once, then a long wait, then one. Dark, which both
    light and dark pages bear.
    """
    h, end = 0.1, 4000.0
    times = np.concatenate([np.arange(0, 40, h), np.arange(40, 400, 0.5), np.arange(400, end, 2)])
    run = flock.simulate(
        SelfAttention(beta=6.0), Uniform(n=48, d=3), end, times=times, solver=RK4(h=h), seed=0
    )
    run = plots.paced(run, 150, waiting=0.35)
    run = flock.measure(run, [Energy(convention="staircase"), ClusterCount()])
    plots.film(
        run,
        IMAGES / "sphere.gif",
        fps=15,
        seconds=10,
        size=(480, 540),
        theme="dark",
        log_time=True,
        tail=12,
        spin=40,
    )


def phase() -> None:
    """The phase diagram of 32 tokens in dimension 1024, with the curve of the theory."""
    diagram = flock.phase_diagram(
        SelfAttention(),
        Uniform(n=32, d=1024),
        beta=np.linspace(0.1, 9, 90),
        t=30,
        frames=121,
        repeats=32,
    )
    for theme, name in (("light", "phase-1024"), ("dark", "phase-1024-dark")):
        with plots.style(theme):
            plots.save_figure(plots.phase_diagram(diagram), IMAGES / f"{name}.png", dpi=200)


def models(folder: str, prompts: str) -> None:
    """Mean cosine and number of clusters of an ALBERT passed beyond its depth, trained and not."""
    texts = probing.texts.from_file(prompts)
    at = np.unique(np.concatenate([np.arange(13), np.linspace(12, DEPTH, 29).round()])).astype(int)
    keep = {"record": Recording(layers=at.tolist()), "batch": 1}
    keep["observe"] = [MeanCosine(), ClusterCount(delta=NEAR)]
    trained = flock.probe(folder, texts, DEPTH, **keep)
    fresh = [
        flock.probe(folder, texts, DEPTH, variant=Variant(untrained=True, seed=seed), **keep)
        for seed in range(SEEDS)
    ]
    untrained = xr.concat(
        [run[["mean_cosine", "cluster_count"]] for run in fresh], "prompt", join="override"
    )
    for theme, name in (("light", "collapse"), ("dark", "collapse-dark")):
        with plots.style(theme):
            figure = _collapse({"untrained": untrained, "trained": trained}, Path(folder).name)
            plots.save_figure(figure, IMAGES / f"{name}.png", dpi=200)


def _collapse(runs: dict[str, xr.Dataset], model: str):
    """Two panels: bands are the spread over prompts (and seeds), lines their mean."""
    with plots.look() as theme:
        figure, axes = plots.panels(1, 2, size=(3.3, 2.7))
        labels = {"mean_cosine": "mean cosine of two tokens", "cluster_count": "clusters"}
        for ax, (name, label) in zip(axes, labels.items()):
            for (case, run), colour in zip(runs.items(), (theme.palette[1], theme.palette[0])):
                values = run[name].values.astype(float)  # (prompt, layer)
                mean, spread = values.mean(0), values.std(0, ddof=1)
                layer = run.layer.values
                low = np.maximum(mean - spread, values.min(0))
                high = np.minimum(mean + spread, values.max(0))
                ax.fill_between(layer, low, high, color=colour, alpha=0.22, lw=0)
                ax.plot(layer, mean, color=colour, marker="o", ms=2.2, lw=1.0, label=case)
            ax.set(xlabel="passes of the one layer", ylabel=label, xlim=(0, DEPTH))
            ax.set_xticks([0, 12, 24, 48, 72, 96])
            ax.axvline(12, color=theme.faint, lw=0.8, zorder=0)
        axes[0].set_ylim(0, 1.04)
        axes[1].set_ylim(0, None)
        axes[0].legend(loc="center right")
        axes[0].set_title(f"A real ALBERT ({model})")
        axes[1].set_title("tokens of cosine above 0.9 are one", loc="left")
        axes[1].annotate(
            "its depth",
            (12, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="top",
            fontsize="small",
            color=theme.soft,
        )
    return figure


if __name__ == "__main__":
    made = {"sphere": sphere, "phase": phase, "models": models}
    made[sys.argv[1]](*sys.argv[2:])

"""The tokens of one sentence, letter by letter.

A trained GPT (pre-norm, seed 0), the same with fresh weights, and a trained shared layer passed
four times as often as it was trained read one sentence. Directions of tokens are drawn in the plane
of their first two principal axes, and on the sphere of the first three; between layers they move on
straight lines. The most frequent letters have a colour each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock.gpt.watching import followed
from tokenflock.papers.small_gpt._models import corpus, said, settings, train_all
from tokenflock.plots import panels, plane
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 6"
CAPTION = (
    "See the letters of one sentence in the plane of their first two principal axes, layer "
    "by layer: same letters gather, in the trained models most."
)
SENTENCE = "the value of the name is bound to the object that the call gave"
CASES = {
    "trained": "trained",
    "untrained": "untrained",
    "deep": "shared layer, four times its depth",
}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    depth, context = settings(scale)[0].depth, settings(scale)[0].context
    (usual, *_), (shared, *_) = train_all(scale, [{"norm": "pre"}, {"norm": "pre", "shared": True}])
    models = {
        "trained": (usual.model, None),
        "untrained": (usual.untrained, None),
        "deep": (shared.model, 4 * depth),
    }
    letters = SENTENCE[:context]
    ids = corpus()[0].encode(letters)[None]
    runs = {
        name: (
            followed(model, ids, passes)
            .isel(prompt=0)
            .assign_coords(word=("token", list(letters)))
            .assign_attrs(
                title=(
                    f"{CASES[name].capitalize()} GPT"
                    if name != "deep"
                    else CASES[name].capitalize()
                )
            )
        )
        for name, (model, passes) in models.items()
    }
    setting = f"{said(scale)}; the sentence “{letters}”"
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(run) for name, run in runs.items()},
    )


def films(data: xr.DataTree) -> dict[str, tuple[xr.Dataset, dict[str, Any]]]:
    """The runs to film, and how to look at them."""
    runs = {name: data[name].to_dataset() for name in CASES}
    return {
        "plane": (runs["trained"], {"view": "plane"}),
        "plane-untrained": (runs["untrained"], {"view": "plane"}),
        "sphere-deep": (runs["deep"], {"view": "sphere"}),
    }


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(len(CASES), 3, size=(3.0, 2.9))
    for row, name in enumerate(CASES):
        run = data[name].to_dataset()
        last = int(run.layer[-1])
        for column, layer in enumerate((0, last // 2, last)):
            plane(run, ax=axes[3 * row + column], at=layer)
            axes[3 * row + column].set_title(f"{CASES[name]}, layer {layer}")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    together = {name: _cohesion(data[name].to_dataset()) for name in CASES}
    return [
        Claim(
            "blanks",
            "in the last layer of the trained model the blanks of the sentence are nearer to each"
            " other than tokens are on the whole (mean cosine of pairs of blanks, less that of all"
            " pairs)",
            "observation",
            together["trained"][0] - together["trained"][1],
            at_least(0.2),
            note="; ".join(
                f"{CASES[name]}: ${a:.2f}$ among blanks, ${b:.2f}$ among all"
                for name, (a, b) in together.items()
            ),
        )
    ]


def _cohesion(run: xr.Dataset) -> tuple[float, float]:
    """Mean cosine among blanks and among all tokens of the last layer."""
    x = run.x.isel(layer=-1).values
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    blank = u[run.word.values.astype(str) == " "]
    return _mean_cosine(blank), _mean_cosine(u)


def _mean_cosine(u: np.ndarray) -> float:
    return float((u @ u.T)[np.triu_indices(len(u), 1)].mean())

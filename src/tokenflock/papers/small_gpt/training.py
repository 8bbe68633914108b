"""While it learns: tokens at steps of the training.

Models with the norm before (pre) and after each part (post) are stopped at some steps, and the
tokens of held-out passages are measured in every layer. What a model learns first is how often each
letter occurs, whatever came before: all tokens say the same, so they may as well be the same.
"""

from __future__ import annotations

import xarray as xr

from tokenflock.papers.small_gpt._drawing import spread
from tokenflock.papers.small_gpt._models import said, settings, train_all
from tokenflock.plots import panels, training
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 2"
CAPTION = (
    "See the tokens of each layer move apart or together while the model learns, step by step."
)
KINDS = ("pre", "post")
EARLY = 100  # steps


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    models = train_all(scale, [{"norm": norm} for norm in KINDS])
    rows = [xr.concat([trained.diary for trained in row], "seed") for row in models]
    data = xr.concat(rows, "norm").assign_coords(norm=list(KINDS))
    return data.assign_attrs(setting=said(scale), tokens=settings(scale)[0].context)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(len(KINDS), 3, size=(2.9, 2.4))
    for row, norm in enumerate(KINDS):
        training(
            data.sel(norm=norm),
            axes=axes[3 * row : 3 * row + 3],
            title=f"{norm}-norm",
            legend=row == len(KINDS) - 1,
        )
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    statements = []
    for norm in KINDS:
        cosine, clusters = (
            data[name].isel(layer=-1).sel(norm=norm) for name in ("mean_cosine", "cluster_count")
        )
        early = cosine.where((cosine.step > 0) & (cosine.step <= EARLY), drop=True)
        at = early.mean("seed").idxmax("step")
        statements += [
            Claim(
                f"collapse-{norm}",
                f"{norm}-norm: within the first {EARLY} steps of the training the tokens of the"
                " last layer collapse (greatest mean cosine at the watched steps, least over"
                " seeds; 1 is consensus)",
                "observation",
                float(early.max("step").min()),
                at_least(0.85),
                note=(
                    f"at step {int(at)} it is {spread(cosine.sel(step=at))}, with"
                    f" {spread(clusters.sel(step=at), 1)} clusters of {int(data.attrs['tokens'])}"
                    f" tokens; before the training {spread(cosine.isel(step=0))}"
                ),
            ),
            Claim(
                f"recovery-{norm}",
                f"{norm}-norm: then the training takes them apart again (mean cosine at the end,"
                " greatest over seeds)",
                "observation",
                float(cosine.isel(step=-1).max()),
                at_most(0.6),
                note=(
                    f"{spread(cosine.isel(step=-1))}, clusters {spread(clusters.isel(step=-1), 1)}"
                ),
            ),
        ]
    return statements

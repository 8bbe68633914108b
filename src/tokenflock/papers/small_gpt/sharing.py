"""One layer for all, passed beyond its depth.

A GPT whose layers share their weights (a small ALBERT with a causal mask) beside the usual one, for
pre- and post-norm. The shared layer is then passed two and four times as often as it was trained,
and the same with fresh weights.
"""

from __future__ import annotations

from typing import cast

import xarray as xr

from tokenflock.gpt.flowing import extend
from tokenflock.gpt.gpt import GPT
from tokenflock.papers.small_gpt._drawing import both, spread
from tokenflock.papers.small_gpt._models import (
    LABELS,
    passages,
    said,
    settings,
    train_all,
    trained_and_not,
)
from tokenflock.plots import look, panels
from tokenflock.plots.bands import band
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 4"
CAPTION = (
    "See one layer, passed beyond the depth it was trained for, gather its tokens while the "
    "loss rises."
)
NORMS = ("pre", "post")
FACTORS = (1, 2, 4)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    kinds = [{"norm": norm} for norm in NORMS] + [{"norm": norm, "shared": True} for norm in NORMS]
    models, ids, depth = train_all(scale, kinds), passages(scale), settings(scale)[0].depth
    own, shared = models[: len(NORMS)], models[len(NORMS) :]
    curves = xr.concat([trained_and_not(row, ids, FACTORS[-1] * depth) for row in shared], "norm")
    deeper = xr.concat(
        [
            xr.concat([extend(cast(GPT, trained.model), ids, FACTORS) for trained in row], "seed")
            for row in shared
        ],
        "norm",
    )
    data = curves.assign_coords(norm=list(NORMS)).assign(
        loss_own=(("norm", "seed"), [[trained.loss for trained in row] for row in own]),
        loss_shared=(("norm", "seed"), [[trained.loss for trained in row] for row in shared]),
        loss_at=deeper.loss.drop_vars(["h", "depth"]),
    )
    return data.assign_attrs(setting=said(scale), depth=depth)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    names = ("mean_cosine", "cluster_count", "effective_rank")
    figure, axes = panels(2, len(names) + 1, size=(2.3, 2.2))
    depth = int(data.attrs["depth"])
    with look(figure) as theme:
        for row, norm in enumerate(NORMS):
            here = axes[row * (len(names) + 1) : (row + 1) * (len(names) + 1)]
            for ax, name in zip(here, names):
                both(
                    ax,
                    data[name].sel(norm=norm),
                    f"{norm}-norm",
                    LABELS[name],
                    1.08 * float(data[name].max()),
                )
                ax.axvline(depth, color=theme.faint, lw=0.8, zorder=0)
                ax.set_xlabel("passes of the one layer")
            ax = here[-1]
            band(ax, data.loss_at.sel(norm=norm), "factor", theme.palette[0])
            ax.set(
                xlabel="passes / trained depth",
                ylabel="loss (nats)",
                title=f"{norm}-norm",
                xticks=list(FACTORS),
            )
            ax.set_ylim(0, None)
        axes[0].legend(loc="best")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    depth = int(data.attrs["depth"])
    statements = []
    for norm in NORMS:
        losses = data.sel(norm=norm)
        trained = losses.sel(weights="trained")
        ends = {k: spread(losses.loss_at.sel(factor=k)) for k in FACTORS}
        statements += [
            Claim(
                f"price-{norm}",
                f"{norm}-norm: layers of their own are better than one shared layer (least"
                " difference of losses over seeds)",
                "observation",
                float((losses.loss_shared - losses.loss_own).min()),
                at_least(0),
                note=f"own {spread(losses.loss_own, 3)}, shared {spread(losses.loss_shared, 3)}",
            ),
            Claim(
                f"deeper-{norm}",
                f"{norm}-norm: past its trained depth the model gets worse (least rise of the loss"
                " at four times the depth)",
                "observation",
                float((losses.loss_at.sel(factor=4) - losses.loss_at.sel(factor=1)).min()),
                at_least(0.01),
                note="; ".join(f"{k * depth} passes: {words}" for k, words in ends.items()),
            ),
            Claim(
                f"clusters-{norm}",
                f"{norm}-norm: four times its depth does not bring the trained layer's tokens into"
                " one cluster (number of clusters, mean over passages, least over seeds)",
                "observation; Theorem 6.1 of arXiv 2312.10794 has one cluster for idealised layers",
                float(trained.cluster_count.isel(layer=-1).min()),
                at_least(2),
                note=(
                    f"at {depth} passes {spread(trained.cluster_count.sel(layer=depth), 0)}, at"
                    f" {4 * depth} passes {spread(trained.cluster_count.isel(layer=-1), 0)}; mean"
                    f" cosine {spread(trained.mean_cosine.sel(layer=depth))} and"
                    f" {spread(trained.mean_cosine.isel(layer=-1))}"
                ),
            ),
        ]
    fresh = data.sel(norm="pre", weights="untrained").mean_cosine
    statements.append(
        Claim(
            "untrained",
            "pre-norm, fresh weights: the mean cosine grows with every pass (least step over passes"
            " and seeds)",
            "observation",
            float(fresh.diff("layer").min()),
            at_least(0),
            note=(
                f"from {spread(fresh.isel(layer=0))} to {spread(fresh.isel(layer=-1))};"
                " post-norm hardly moves with fresh weights, at most"
                f" ${float(data.sel(norm='post', weights='untrained').mean_cosine.max()):.2f}$"
            ),
        )
    )
    return statements

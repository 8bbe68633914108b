"""A trained layer as a flow: half the step, twice the depth.

Residual networks are read as Euler steps of a differential equation (section 2 of arXiv
2312.10794): $x ← x + h F(x)$ with $h = 1$ in the trained model (pre-norm), or the same followed by
the sphere (nGPT). Here the shared layer of a trained model is passed $k$ times as often with steps
$h = 1/k$, so that all reach the same time, up to $k = 64$; then the tokens, the predictions and the
loss are compared. Post-norm layers are left out: with a gain in their norm they are no identity at
$h = 0$, so there is no flow.
"""

from __future__ import annotations

from typing import cast

import xarray as xr

from tokenflock.gpt.flowing import refine
from tokenflock.gpt.gpt import GPT
from tokenflock.papers.small_gpt._drawing import spread
from tokenflock.papers.small_gpt._models import passages, said, train_all
from tokenflock.plots import look, panels
from tokenflock.plots.bands import band
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, near
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 5"
CAPTION = (
    "See a trained layer, run with half the step and twice the depth, approach a flow at "
    "first order while its predictions change little."
)
NORMS = {"pre": "pre-norm", "ngpt": "nGPT"}
FACTORS = (1, 2, 4, 8, 16, 32, 64)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    models, ids = (
        train_all(scale, [{"norm": norm, "shared": True} for norm in NORMS]),
        passages(scale),
    )
    rows = [
        xr.concat([refine(cast(GPT, trained.model), ids, FACTORS) for trained in row], "seed")
        for row in models
    ]
    return xr.concat(rows, "norm").assign_coords(norm=list(NORMS)).assign_attrs(setting=said(scale))


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(2.9, 2.6))
    data = data.swap_dims(factor="h")
    with look(figure) as theme:
        for place, norm in enumerate(NORMS):
            colour, line = theme.palette[(0, 2)[place]], ("-", "--")[place]
            curves = data.sel(norm=norm)
            band(axes[0], curves.distance.isel(h=slice(0, -1)), "h", colour, NORMS[norm], line)
            band(axes[1], curves.divergence.isel(h=slice(1, None)), "h", colour, "_", line)
            band(axes[2], curves.loss, "h", colour, "_", line)
        h = data.h.values[3:-1]
        slope = (
            (h - data.h.values[-1])
            / (h[-1] - data.h.values[-1])
            * float(data.distance.isel(h=-2).min())
            * 0.5
        )
        axes[0].plot(h, slope, ":", color=theme.soft, label="first order")
        axes[0].set(xscale="log", yscale="log", ylabel="distance to the finest steps")
        axes[1].set(xscale="log", ylabel="change of predictions (nats)", ylim=(0, None))
        axes[2].set(xscale="log", ylabel="loss (nats)", ylim=(0, None))
        for ax in axes:
            ax.set_xlabel("step $h$")
            ax.set_xticks([1, 1 / 4, 1 / 16, 1 / 64], ["1", "1/4", "1/16", "1/64"])
            ax.minorticks_off()
        axes[0].legend(loc="best")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    statements = []
    for norm in NORMS:
        curves = data.sel(norm=norm)
        euler = (1 / 16 - 1 / 64) / (1 / 32 - 1 / 64)  # 3
        ratio = curves.distance.isel(factor=-3) / curves.distance.isel(factor=-2)
        statements += [
            Claim(
                f"order-{norm}",
                f"{NORMS[norm]}: as $h → 0$ the layers approach a flow at first order"
                " (distance to $h = 1/64$ of $h = 1/16$ over that of $h = 1/32$, which is 3"
                " for Euler's method; mean over seeds)",
                "Section 2 of arXiv 2312.10794; Euler's method",
                float(ratio.mean()),
                near(euler, 0.6),
                note=f"{spread(ratio)}",
            ),
            Claim(
                f"step-{norm}",
                f"{NORMS[norm]}: the trained step is no small step of that flow (least"
                " relative distance of $h = 1$ over seeds)",
                "Section 2 of arXiv 2312.10794",
                float(curves.distance.isel(factor=0).min()),
                at_least(0.1),
                note=(
                    f"loss {spread(curves.loss.isel(factor=0))} at $h = 1$,"
                    f" {spread(curves.loss.isel(factor=1))} at $1/2$,"
                    f" {spread(curves.loss.isel(factor=-1))} at $1/64$"
                ),
            ),
        ]
    return statements

"""Pairs end opposite in the share that the scale function says, and never below the critical $β$.

Pairs of uniform tokens go through layers of $h = 0.1$ with fresh common values (`ValueNoise`) up to
$t = 20$, for several $β$ and $d$. The share of pairs with a negative cosine at the end is compared
with the backward equation of the limiting diffusion of $R$ at the same time, solved on a grid, and
the curves show its limit $t → ∞$: $(S(1) − S(R))/(S(1) − S(−1))$ with the scale function $S$,
averaged over uniform starts. Model: arXiv 2601.21942, whose abstract tells of a phase transition;
the diffusion, the critical $β$ and the shares are derived here.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import MinimumCosine
from tokenflock.papers.stochastic_depth._pair import antipodal_share, critical_beta, share_below
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SOURCE = "arXiv 2601.21942: the antipodal phase"
CAPTION = (
    "See the share of pairs that end opposite (dots with two standard errors) lie on what the"
    " diffusion of their cosine predicts (dashes for $t = 20$, lines for $t → ∞$), and none below"
    " $β_c$, which a stroke on the axis marks for each $d$."
)
T, H = 20.0, 0.1
BETAS = (0.5, 1.0, 2.0, 4.0)
DIMENSIONS = (2, 3, 8)
CURVES = (2, 3, 5, 8, 16)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=2000, paper=20_000)
    cosine = np.stack([_ends(d, repeats) for d in DIMENSIONS])
    expected = [[share_below(beta, d, T) for beta in BETAS] for d in DIMENSIONS]
    beta = np.linspace(0.05, 5, scale.pick(quick=34, paper=100))
    curves = [[antipodal_share(b, d) for b in beta] for d in CURVES]
    parts = {
        "pairs": xr.Dataset(
            {
                "share": (("d", "beta"), (cosine < 0).mean(-1)),
                "expected": (("d", "beta"), expected),
            },
            coords={"d": list(DIMENSIONS), "beta": list(BETAS)},
            attrs={"repeats": repeats},
        ),
        "limit": xr.Dataset(
            {"share": (("d", "beta"), curves)}, coords={"d": list(CURVES), "beta": beta}
        ),
    }
    setting = (
        f"$n = 2$, $h = {H}$, $t = {T:g}$, $β = 0.5$ to 4, $d = 2$, 3, 8, {repeats} pairs a cell"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _ends(d: int, repeats: int) -> Array:
    """Cosines (beta, repeat) at the end."""
    run = flock.ensemble(
        Block(noise=ValueNoise(alone=True)),
        Uniform(n=2, d=d),
        over={"beta": list(BETAS)},
        repeats=repeats,
        t=T,
        frames=2,
        solver=Layer(h=H),
        observe=[MinimumCosine()],
        keep=True,
    )
    return run.minimum_cosine.values[..., -1]


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    pairs, limit = data["pairs"].to_dataset(), data["limit"].to_dataset()
    figure, (ax,) = panels(1, 1, size=(4.6, 3.1))
    error = np.sqrt(pairs.share * (1 - pairs.share) / pairs.attrs["repeats"])
    with look(ax) as theme:
        for colour, d in zip(theme.palette, limit.d.values):
            share = limit.share.sel(d=d)
            ax.plot(limit.beta, share, color=colour, label=f"$d={d}$")
            ax.plot(critical_beta(int(d)), 0, "|", color=colour, markersize=12, clip_on=False)
            if d in pairs.d.values:
                ax.plot(pairs.beta, pairs.expected.sel(d=d), "_", color=colour, markersize=9)
                ax.errorbar(
                    pairs.beta,
                    pairs.share.sel(d=d),
                    2 * error.sel(d=d),
                    fmt="o",
                    color=colour,
                    markersize=4,
                )
        ax.set(xlabel=r"$\beta$", ylabel="share of opposite pairs", xlim=(0, 5), ylim=(0, 0.6))
        ax.set_title(f"Lines: $t\\to\\infty$; dots: layers, $t={T:g}$; dashes: theory at that time")
        figure.legend(loc="outside lower center", ncols=len(limit.d))
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    pairs, limit = data["pairs"].to_dataset(), data["limit"].to_dataset()
    cells = [(2, 1.0), (2, 4.0), (3, 1.0), (3, 4.0), (8, 0.5), (8, 1.0), (8, 2.0), (8, 4.0)]
    return [*(_share(pairs, d, beta) for d, beta in cells), *_limits(limit)]


def _share(pairs: xr.Dataset, d: int, beta: float) -> Claim:
    here, count = pairs.sel(d=d, beta=beta), pairs.attrs["repeats"]
    expected = float(here.expected)
    error = np.sqrt(max(expected * (1 - expected), 1 / count) / count)
    side = "beyond" if beta > critical_beta(d) else "below"
    return Claim(
        f"share-{d}-{beta:g}",
        f"two uniform tokens, $d = {d}$, $β = {beta:g}$ ({side} $β_c ="
        f" {critical_beta(d):.4f}$): share with a negative cosine at $t = {T:g}$",
        "model of arXiv 2601.21942; diffusion of the cosine derived here",
        float(here.share),
        monte_carlo(expected, error, slack=0.01),
        error=float(error),
        note=f"in the limit ${antipodal_share(beta, d):.4f}$; slack 0.01 for layers of $h = {H}$",
    )


def _limits(limit: xr.Dataset) -> list[Claim]:
    """What the scale function says by itself."""
    circle = limit.share.sel(d=2)
    high = limit.share.where(limit.beta >= 4.5, drop=True)
    return [
        Claim(
            "circle",
            "on the circle half of all pairs end opposite, whatever $β > 0$ (greatest"
            " deviation of the scale function's share from $1/2$)",
            "derived here",
            float(abs(circle - 0.5).max()),
            at_most(1e-6),
        ),
        Claim(
            "growing",
            "beyond $β_c$ the share grows with $β$ in $d = 3$, 5, 8, 16 (least increment"
            " along $β$)",
            "derived here; cf. abstract of arXiv 2601.21942",
            float(_rising(limit.share.sel(d=[3, 5, 8, 16])).min()),
            at_least(1e-6),
        ),
        Claim(
            "dimension",
            "the larger $d$, the smaller the share at the same $β$ ($β ≥ 4.5$: least fall"
            " from one $d$ to the next of 2, 3, 5, 8, 16)",
            "derived here",
            float(-high.diff("d").max()),
            at_least(1e-6),
        ),
    ]


def _rising(share: xr.DataArray) -> xr.DataArray:
    """Increments along beta where there is a share at all; NaN elsewhere."""
    step = share.diff("beta")
    return step.where(share.shift(beta=1).sel(beta=step.beta) > 0)

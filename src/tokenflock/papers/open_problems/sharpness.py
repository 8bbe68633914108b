"""The front of the phase diagram sharpens like $d^(−1/2)$.

Question: how sharp is the transition of Figure 3 of arXiv 2312.10794 as $d$ grows? Method: $n = 32$
uniform tokens go through layers of $h = 0.1$ to $t = 10$ for $β$ around the front of orthogonal
tokens; the share of pairs with cosine above 0.999 falls from 1 to 0, and the width is the distance
in $β$ between $3/4$ and $1/4$. Deviations of the first cosines from 0 are of size $d^(−1/2)$, and
so, to first order, is the shift of a system's front (derived here). Verdict: supported that the
width goes to zero with $d$, with an exponent near $−1/2$ in the range tried.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import PairDensity
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure, plain_ticks
from tokenflock.reproduction.claim import Claim, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import layer_crossing

SOURCE = "Question 4: the sharpness of the transition"
CAPTION = (
    "See the front in $β$, the share of clustered pairs at $t = 10$, sharpen as $d$ grows, with a"
    " width that falls about like $d^(−1/2)$."
)
OPEN = "question after Figure 3 of arXiv 2312.10794"
N, T = 32, 10.0
DIMENSIONS = (64, 256, 1024)
GROUPS = 4


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    repeats = scale.pick(quick=16, paper=1024)
    beta = np.linspace(3.8, 5.4, scale.pick(quick=17, paper=65))
    rows = []
    for d in DIMENSIONS:
        run = flock.ensemble(
            SelfAttention(),
            Uniform(n=N, d=d),
            over={"beta": beta},
            repeats=repeats,
            t=T,
            frames=2,
            solver=Layer(h=0.1),
            observe=[PairDensity(delta=1e-3)],
            keep=True,
        )
        share = run.pair_density.values[..., -1]
        rows.append(share.reshape(len(beta), GROUPS, -1).mean(-1))
    return xr.Dataset(
        {"share": (("d", "beta", "group"), rows)},
        {"d": list(DIMENSIONS), "beta": beta},
        {"setting": f"SA, $n = {N}$, layers of $h = 0.1$, $t = {T:g}$, {repeats} systems a cell"},
    )


def _crossing(share: np.ndarray, beta: np.ndarray, level: float) -> float:
    """The beta at which a share falls through a level."""
    return float(np.interp(-level, -np.minimum.accumulate(share), beta))


def _widths(data: xr.Dataset) -> xr.Dataset:
    """Width and middle (d, group)."""
    beta = data.beta.values
    table = [
        [
            [_crossing(data.share.sel(d=d).values[:, g], beta, q) for q in (0.75, 0.5, 0.25)]
            for g in range(GROUPS)
        ]
        for d in DIMENSIONS
    ]
    low, middle, high = np.array(table).transpose(2, 0, 1)
    return xr.Dataset(
        {"width": (("d", "group"), high - low), "middle": (("d", "group"), middle)},
        {"d": list(DIMENSIONS)},
    )


def _slope(data: xr.Dataset) -> tuple[float, float]:
    """(exponent of the width in d, its error over groups)."""
    width = _widths(data).width
    slopes = [
        np.polyfit(np.log(DIMENSIONS), np.log(width.values[:, g]), 1)[0] for g in range(GROUPS)
    ]
    return float(np.mean(slopes)), float(np.std(slopes, ddof=1) / np.sqrt(GROUPS))


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    width, (slope, _) = _widths(data).width, _slope(data)
    with look(figure) as theme:
        for colour, d in zip(theme.palette, DIMENSIONS):
            mean = data.share.sel(d=d).mean("group")
            axes[0].plot(data.beta, mean, "o-", color=colour, markersize=3, label=f"$d={d}$")
        axes[0].axvline(_front(), color=theme.soft, linestyle=":", label="orthogonal tokens")
        axes[0].set(xlabel=r"$\beta$", ylabel="share of clustered pairs")
        axes[0].set_title(f"$n={N}$, $t={T:g}$")
        axes[0].legend(loc="lower left")
        axes[1].loglog(DIMENSIONS, width.mean("group"), "o", color=theme.palette[0])
        line = float(width.isel(d=0).mean()) * (np.array(DIMENSIONS) / DIMENSIONS[0]) ** -0.5
        axes[1].loglog(DIMENSIONS, line, "--", color=theme.palette[2], label="$d^{-1/2}$")
        axes[1].set(xlabel="$d$", ylabel=r"width in $\beta$")
        axes[1].set_title(f"Measured exponent {slope:.2f}".replace("-", "\N{MINUS SIGN}"))
        plain_ticks(axes[1].yaxis)
        plain_ticks(axes[1].xaxis)
        axes[1].legend(loc="upper right")
    return figure


def _front() -> float:
    """The beta at which orthogonal tokens reach cosine 0.999 at time T, by the layer recursion."""
    beta = np.linspace(3.5, 6, 126)
    layers = np.array([float(layer_crossing(b, n=N, delta=1e-3, h=0.1)) for b in beta])
    return float(np.interp(T, 0.1 * layers, beta))


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    slope, error = _slope(data)
    width, middle = _widths(data).width.mean("group"), _widths(data).middle
    off = float(middle.sel(d=1024).std() / np.sqrt(GROUPS))
    return [
        Claim(
            "exponent",
            "SA, $n = 32$, $t = 10$: the width of the front in $β$ falls like $d^(−1/2)$,"
            " $d = 64$ to 1024 (slope in log-log)",
            OPEN + "; exponent derived here to first order; verdict: supported",
            slope,
            near(-0.5, 0.15 + 4 * error),
            error=error,
            note="0.15 for terms of higher order at $d = 64$",
        ),
        Claim(
            "narrower",
            "the width falls from one $d$ to the next (greatest ratio)",
            OPEN + "; verdict: supported",
            float((width.values[1:] / width.values[:-1]).max()),
            at_most(0.9),
        ),
        Claim(
            "front",
            "at $d = 1024$ the middle of the front is that of orthogonal tokens",
            "layer recursion for Theorem 6.8 of arXiv 2312.10794",
            float(middle.sel(d=1024).mean()),
            near(_front(), 0.1 + 4 * off),
            error=off,
            note="0.1, the spacing of $β$; the layer at which 0.999 is passed is a whole number",
        ),
    ]

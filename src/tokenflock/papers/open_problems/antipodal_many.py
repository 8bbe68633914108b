"""With fresh common values four tokens may end two against two; three never do.

Question: the antipodal phase of arXiv 2601.21942 is understood for two tokens; at which $β$ does it
begin for $n > 2$? Method: clusters of unequal mass are pushed out of opposite places
(`stochastic-depth/clusters`), so only even splits can last, and these have the exponents of a pair:
the same critical $β$, $cosh^2(β) = (d−1)/2$. $n = 2$, 3, 4 uniform tokens in $d = 3$ (where every
$β > 0$ is beyond) and $d = 8$ at $β = 0.5$ (below $β_c = 1.239$), layers of $h = 0.1$ to $t = 40$:
share of systems whose least cosine is below $−1/2$. Verdict: supported that $β_c$ is that of a pair
for $n = 4$, refuted that $n = 3$ has an antipodal phase at all (its opposite clusters are
transient).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import MinimumCosine
from tokenflock.papers.stochastic_depth._pair import leaving_time, share_below
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SOURCE = "Question 3: the antipodal phase for $n > 2$"
CAPTION = (
    "See the share of systems with opposite tokens die out for three tokens and stay for two and"
    " four beyond $β_c$, and vanish for all below it."
)
OPEN = "question after arXiv 2601.21942"
SIZES = (2, 3, 4)
CELLS = {"beyond": (3, 1.0), "below": (8, 0.5)}  # d, beta
T, H = 40.0, 0.1


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    repeats = scale.pick(quick=128, paper=16_384)
    share = [[_share(d, beta, n, repeats) for n in SIZES] for d, beta in CELLS.values()]
    return xr.Dataset(
        {"share": (("cell", "n", "time"), share)},
        {"cell": list(CELLS), "n": list(SIZES), "time": np.linspace(0, T, 9)},
        {
            "setting": (
                f"fresh common values, $d = 3$, $β = 1$ and $d = 8$, $β = 0.5$, $h = {H}$,"
                f" {repeats} systems"
            ),
            "repeats": repeats,
        },
    )


def _share(d: int, beta: float, n: int, repeats: int) -> np.ndarray:
    run = flock.ensemble(
        Block(beta=beta, noise=ValueNoise(alone=True)),
        Uniform(n=n, d=d),
        repeats=repeats,
        t=T,
        frames=9,
        solver=Layer(h=H),
        observe=[MinimumCosine()],
        keep=True,
    )
    return (run.minimum_cosine.values < -0.5).mean(0)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    for ax, (cell, (d, beta)) in zip(axes, CELLS.items()):
        with look(ax) as theme:
            for colour, mark, n in zip(theme.palette, "os^", data.n.values):
                here = data.share.sel(cell=cell, n=n)
                ax.plot(data.time, here, f"{mark}-", color=colour, markersize=3.5, label=f"$n={n}$")
            side = "beyond" if cell == "beyond" else "below"
            ax.set(xlabel="$t$", ylabel="share with opposite tokens", ylim=(-0.02, 1))
            ax.set_title(rf"$d={d}$, $\beta={beta:g}$: {side} $\beta_c$")
            ax.legend(loc="upper right")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    count, last = data.attrs["repeats"], data.share.isel(time=-1)
    pair, three, four = (float(last.sel(cell="beyond", n=n)) for n in SIZES)
    lifetime = leaving_time(1.0, 3, 1 / 3)
    expected = share_below(1.0, 3, T)
    error = np.sqrt(expected * (1 - expected) / count)
    noise = np.sqrt(max(four * (1 - four), 1 / count) / count)
    return [
        Claim(
            "pair",
            "control: two tokens, $d = 3$, $β = 1$: share with a cosine below $−1/2$ at $t"
            f" = {T:g}$",
            "diffusion of the cosine (derived in stochastic-depth)",
            pair,
            monte_carlo(expected, error, slack=0.02),
            error=float(error),
            note=f"expected with a negative cosine ${expected:.4f}$; slack for cosines above"
            " $−1/2$",
        ),
        Claim(
            "three",
            f"three tokens, $d = 3$, $β = 1$: share still opposite at $t = {T:g}$, where"
            " masses 1 : 2 leave in a mean time of 12.9",
            OPEN + "; verdict: refuted that $n = 3$ has an antipodal phase",
            three,
            at_most(np.exp(-(T - 20) / lifetime) + 4 * np.sqrt(0.05 / count)),
            note=f"mean time ${lifetime:.2f}$ (speed measure); $e^(−(t−20)/12.9)$ and 4 errors",
        ),
        Claim(
            "four",
            "four tokens, $d = 3$, $β = 1$, beyond $β_c$: some stay two against two (share,"
            f" $t = {T:g}$)",
            OPEN + "; verdict: supported, an antipodal phase for $n = 4$",
            four,
            at_least(4 / count),
            error=float(noise),
        ),
        Claim(
            "not-more",
            "and not more often than pairs do: share of $n = 4$ minus share of $n = 2$",
            OPEN,
            four - pair,
            at_most(2 * float(np.hypot(noise, error))),
        ),
        Claim(
            "below",
            "below $β_c$ ($d = 8$, $β = 0.5$) nothing stays opposite, $n = 2$, 3, 4"
            f" (greatest share at $t = {T:g}$)",
            OPEN + "; verdict: supported, $β_c$ of $n = 4$ is not below that of a pair",
            float(last.sel(cell="below").max()),
            at_most(share_below(0.5, 8, T) + 4 / np.sqrt(count) / 8),
        ),
    ]

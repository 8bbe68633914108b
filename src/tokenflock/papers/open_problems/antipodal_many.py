"""With fresh common values four tokens may end two against two; three never do.

Question: the antipodal phase of arXiv 2601.21942 is understood for two tokens; at which $β$ does it
begin for $n > 2$? Method: clusters of unequal mass are pushed out of opposite places
(`stochastic-depth/clusters`), so only even splits can last, and near opposite places these have the
exponents of a pair: the same critical $β$, $cosh^2(β) = (d−1)/2$. $n = 2$, 3, 4 tokens, uniform in
$d = 3$ (where every $β > 0$ is beyond) and in $d = 8$ at $β = 1$ (below $β_c = 1.239$), and next to
opposite places (0.3 radians away, one against one, two and two) in $d = 8$ at $β = 1.5$; layers of
$h = 0.1$ to $t = 60$: share of systems whose least cosine is below $−1/2$, and share of four tokens
that are two against two. Unequal clusters that were still opposite at $t = 20$ are so at $t = 60$
with at most the probability that the backward equation of the cosine gives. Verdict: supported that
$n = 4$ has an antipodal phase and that it begins between $β = 1$ and 1.5 in $d = 8$; refuted that
$n = 3$ has one (its opposite clusters are transient).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import InnerProducts
from tokenflock.papers.stochastic_depth._pair import critical_beta, share_below, share_staying
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SOURCE = "Question 3: the antipodal phase for $n > 2$"
CAPTION = (
    "See the share of systems with opposite tokens (a cosine below $−1/2$) die out for three"
    " tokens and stay for two and four beyond $β_c$ (left: uniform starts; right: starts next to"
    " opposite places), and vanish for all below it (middle)."
)
OPEN = "question after arXiv 2601.21942"
SIZES = (2, 3, 4)
CELLS = {"low": (3, 1.0), "below": (8, 1.0), "beyond": (8, 1.5)}  # d, beta; the last: near
T, H, MET, FAR, AWAY = 60.0, 0.1, 20.0, -0.5, 0.3  # MET: when two of three tokens have met


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    repeats = scale.pick(quick=1024, paper=16_384)
    ends = [[_shares(cell, n, repeats) for n in SIZES] for cell in CELLS]
    share, even = np.moveaxis(np.array(ends), 2, 0)
    dims = ("cell", "n", "time")
    return xr.Dataset(
        {"share": (dims, share), "even": (dims, even)},
        {"cell": list(CELLS), "n": list(SIZES), "time": np.linspace(0, T, 13)},
        {
            "setting": (
                "fresh common values, $d = 3$, $β = 1$ and $d = 8$, $β = 1$, uniform; $d = 8$,"
                f" $β = 1.5$, next to opposite places; $h = {H}$, {repeats} systems"
            ),
            "repeats": repeats,
        },
    )


def _near(n: int, d: int) -> np.ndarray:
    """Tokens in turn next to both of two opposite places, each in a direction of its own."""
    x = np.zeros((n, d))
    x[:, 0] = np.cos(AWAY) * (-1.0) ** np.arange(n)
    x[np.arange(n), 1 + np.arange(n)] = np.sin(AWAY)
    return x


def _shares(cell: str, n: int, repeats: int) -> tuple[Array, Array]:
    """Shares in time: of systems with opposite tokens, and of those split into equal halves."""
    d, beta = CELLS[cell]
    run = flock.ensemble(
        Block(beta=beta, noise=ValueNoise(alone=True)),
        _near(n, d) if cell == "beyond" else Uniform(n=n, d=d),
        repeats=repeats,
        t=T,
        frames=13,
        solver=Layer(h=H),
        observe=[InnerProducts()],
        keep=True,
    )
    cosine = run.inner_products.values
    opposite, near = (cosine < FAR).sum(-1), (cosine > -FAR).sum(-1)
    halves = ((opposite == n / 2) & (near == n / 2)).all(-1)
    return (opposite > 0).any(-1).mean(0), halves.mean(0)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(2.6, 2.7), sharey=True)
    for ax, (cell, (d, beta)) in zip(axes, CELLS.items()):
        with look(ax) as theme:
            for colour, mark, n in zip(theme.palette, "os^", data.n.values):
                here = data.share.sel(cell=cell, n=n)
                ax.plot(data.time, here, f"{mark}-", color=colour, markersize=3.5, label=f"$n={n}$")
            side = "beyond" if beta > critical_beta(d) else "below"
            ax.set(xlabel="$t$", ylim=(-0.02, 1.02))
            ax.set_title(rf"$d={d}$, $\beta={beta:g}$: {side} $\beta_c$")
            if cell == "below":
                ax.legend(loc="upper right")
    axes[0].set_ylabel("share with opposite tokens")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    count, last = data.attrs["repeats"], data.isel(time=-1)
    low = last.share.sel(cell="low")
    staying = share_staying(1.0, 3, T - MET, 1 / 3, FAR)
    even = last.even.sel(n=4)
    left = float(data.share.sel(cell="low", n=4, time=MET)) * staying
    both = float(np.hypot(_error(float(low.sel(n=2)), count), _error(float(low.sel(n=4)), count)))
    return [
        _pair(float(low.sel(n=2)), count),
        Claim(
            "three",
            f"three tokens, $d = 3$, $β = 1$: share still opposite at $t = {T:g}$ is at most the"
            f" probability that masses 1 : 2 that begin opposite are so {T - MET:g} later",
            OPEN + "; verdict: refuted that $n = 3$ has an antipodal phase",
            float(low.sel(n=3)),
            at_most(staying + 4 * _error(staying, count)),
            error=_error(float(low.sel(n=3)), count),
            note=f"${staying:.4f}$ (backward equation) and 4 errors; by $t = {MET:g}$ two of"
            " the three have met",
        ),
        Claim(
            "four",
            "four tokens, $d = 3$, $β = 1$, beyond $β_c$: share that is two against two at"
            f" $t = {T:g}$, more than masses 1 : 2 would leave of all that were opposite at"
            f" $t = {MET:g}$",
            OPEN + "; verdict: supported, an antipodal phase for $n = 4$",
            float(even.sel(cell="low")),
            at_least(left + 4 * _error(left, count)),
            error=_error(float(even.sel(cell="low")), count),
            note=f"they would leave ${left:.4f}$ (and 1 : 3 fewer); 4 errors",
        ),
        Claim(
            "not-more",
            "and not more often than pairs do: share of $n = 4$ minus share of $n = 2$",
            OPEN + "; an observation",
            float(low.sel(n=4) - low.sel(n=2)),
            at_most(4 * both),
            note="4 errors",
        ),
        *_eight(last, count),
    ]


def _pair(share: float, count: int) -> Claim:
    expected = share_below(1.0, 3, T, FAR)
    return Claim(
        "pair",
        f"control: two tokens, $d = 3$, $β = 1$: share with a cosine below $−1/2$ at $t = {T:g}$",
        "diffusion of the cosine (derived in stochastic-depth)",
        share,
        monte_carlo(expected, _error(expected, count), slack=0.01),
        error=_error(expected, count),
        note=f"expected ${expected:.4f}$; slack 0.01 for layers of $h = {H}$",
    )


def _eight(last: xr.Dataset, count: int) -> list[Claim]:
    """d = 8, on both sides of the critical beta of a pair."""
    (d, low), (_, high) = CELLS["below"], CELLS["beyond"]
    transient, uneven = share_below(low, d, T, FAR), share_staying(high, d, T, 1 / 3, FAR)
    return [
        Claim(
            "below",
            f"below $β_c$ ($d = {d}$, $β = {low:g}$) nothing stays opposite, $n = 2$, 3, 4"
            f" (greatest share at $t = {T:g}$)",
            OPEN + f"; verdict: supported, $β_c$ of $n = 4$ is above ${low:g}$",
            float(last.share.sel(cell="below").max()),
            at_most(transient + 4 * _error(transient, count)),
            note=f"pairs that have not yet left: ${transient:.4f}$",
        ),
        Claim(
            "beyond",
            f"beyond it ($d = {d}$, $β = {high:g}$) four tokens that begin two against two, $0.3$"
            f" from opposite places, stay so: share at $t = {T:g}$, more than masses 1 : 2 that"
            " begin opposite would leave",
            OPEN + f"; verdict: supported, $β_c$ of $n = 4$ is below ${high:g}$",
            float(last.even.sel(cell="beyond", n=4)),
            at_least(uneven + 4 * _error(uneven, count)),
            error=_error(float(last.even.sel(cell="beyond", n=4)), count),
            note=f"they would leave ${uneven:.4f}$; 4 errors",
        ),
    ]


def _error(share: float, count: int) -> float:
    """The standard error of a share; of one system where none is expected."""
    return float(np.sqrt(max(share * (1 - share), 1 / count) / count))

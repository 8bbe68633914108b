"""Opposite clusters of equal mass stay, those of unequal mass are shaken apart.

Opposite clusters of masses $m$ and $1 − m$ hear $c_1 x$ and $−c_2 x$, $c = tanh(β ±
log(m/(1−m))/2)$. Only for equal masses they move alike, and opposite places are at rest. (1) Four
tokens, two and two, $d = 8$: the distance inside a cluster shrinks at $(d−1) tanh^2(β)/d$, the
distance from opposite places moves at the exponent of a pair. (2) Masses 1 : 2, exactly opposite:
$1 + R$ after one layer, and the mean time to $R = 0$ against the speed measure of the diffusion of
$R$. All derived here; the abstract of arXiv 2601.21942 reports antipodal formations of more than
two tokens in experiments.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.events import Consensus
from tokenflock.observables import InnerProducts, MinimumCosine
from tokenflock.papers.stochastic_depth._pair import (
    antipodal_exponent,
    drift,
    gap_of_clusters,
    leaving_time,
)
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_most, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Given

SOURCE = "arXiv 2601.21942: more than two tokens"
CAPTION = (
    "See the drift vanish at $R = −1$ only for equal masses (left), and unequal opposite clusters"
    " leave in the time that the theory says (right)."
)
DERIVED = "model of arXiv 2601.21942; derived here"
D, H, T, ONE = 8, 0.05, 4.0, 0.02
BETAS = (1.0, 2.0)
NEAR = 1e-3
LAW = Block(noise=ValueNoise(alone=True))


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=600, paper=20_000)
    setting = (
        f"$d = {D}$, $β = 1$ and 2; four tokens 2 + 2: $h = {H}$, $t = {T:g}$; masses 1 : 2: one"
        f" layer of $h = {ONE}$, and $h = {H}$ until $R = 0$; {repeats} systems"
    )
    parts = {
        "balanced": _balanced(repeats),
        "unbalanced": _unbalanced(4 * repeats),
        "leaving": _leaving(repeats),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _run(x: np.ndarray | Given, repeats: int, t: float, h: float, observe: list) -> xr.Dataset:
    return flock.ensemble(
        LAW,
        x,
        over={"beta": list(BETAS)},
        repeats=repeats,
        t=t,
        frames=2,
        solver=Layer(h=h),
        observe=observe,
        keep=True,
        dtype="float64",
    )


def _balanced(repeats: int) -> xr.Dataset:
    """Rates of log(1 - R) inside a cluster and of log |m + m'|^2 for the means m, m' of both."""
    x = np.zeros((4, D))
    x[:, 0] = (1, 1, -1, -1)
    x[1, 1], x[2, 2], x[3, 3] = NEAR, NEAR, NEAR
    G = _run(x, repeats, T, H, [InnerProducts()]).inner_products.values
    gaps = {"inside": 1 - G[..., 0, 1], "between": G.sum((-1, -2)) / 4}
    variables = {}
    for name, gap in gaps.items():
        rate = np.log(gap[..., 1] / gap[..., 0]) / T
        variables[name] = ("beta", rate.mean(-1))
        variables[f"{name}_error"] = ("beta", rate.std(-1) / np.sqrt(repeats))
    return xr.Dataset(variables, coords={"beta": list(BETAS)})


def _unbalanced(repeats: int) -> xr.Dataset:
    """1 + R after one layer from exactly opposite clusters of masses 1 : 2, and 1 : 1."""
    variables = {}
    for name, w in (("unequal", (1, 2)), ("equal", (1, 1))):
        x = np.zeros((2, D))
        x[:, 0] = (1, -1)
        R = _run(Given(x, np.array(w)), repeats, ONE, ONE, [MinimumCosine()]).minimum_cosine.values[
            ..., -1
        ]
        variables[name] = ("beta", (1 + R).mean(-1))
        variables[f"{name}_error"] = ("beta", R.std(-1) / np.sqrt(repeats))
    return xr.Dataset(variables, coords={"beta": list(BETAS)})


def _leaving(repeats: int) -> xr.Dataset:
    """Mean time to R = 0 of masses 1 : 2 that begin opposite, beta = 1, and its survival."""
    x = np.zeros((2, D))
    x[:, 0] = (1, -1)
    run = flock.ensemble(
        Block(beta=BETAS[0], noise=ValueNoise(alone=True)),
        Given(x, np.array([1, 2])),
        repeats=repeats,
        t=60.0,
        frames=121,
        solver=Layer(h=H),
        observe=[],
        until=Consensus(delta=1.0),
    )
    return run[["survival", "mean_time", "mean_time_error", "censored"]].drop_attrs()


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    leaving = data["leaving"].to_dataset()
    figure, axes = panels(1, 2, size=(3.6, 2.8))
    R = np.linspace(-1, -0.8, 400)
    with look(figure) as theme:
        for colour, m, words in zip(theme.palette, (0.5, 1 / 3, 0.2), ("1:1", "1:2", "1:4")):
            axes[0].plot(R, drift(R, BETAS[0], D, m), color=colour, label=f"masses {words}")
        axes[0].axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        axes[0].set(xlabel="cosine $R$", ylabel="drift of $R$", xlim=(-1, -0.8), ylim=(0, 0.34))
        axes[0].set_title(rf"At $R=-1$ only 1:1 is at rest ($\beta=1$, $d={D}$)")
        axes[0].set_xticks([-1, -0.9, -0.8])
        axes[0].legend(loc="upper left", ncols=3, columnspacing=1, handlelength=1)
        axes[1].semilogy(
            leaving.time,
            leaving.survival.where(leaving.survival > 0),
            drawstyle="steps-post",
            color=theme.palette[0],
            label="layers, 1:2",
        )
        expected = leaving_time(BETAS[0], D, 1 / 3, H)
        axes[1].axvline(
            expected, linestyle="--", color=theme.palette[2], label=f"mean, theory: {expected:.2f}"
        )
        axes[1].set(xlabel="$t$", ylabel="share still at $R<0$", xlim=(0, 35), ylim=(2e-3, 1.2))
        axes[1].set_title(rf"Masses 1:2 leave, $\beta=1$, $d={D}$")
        axes[1].legend(loc="upper right")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    balanced, unbalanced = data["balanced"].to_dataset(), data["unbalanced"].to_dataset()
    inside = [
        _rate(
            balanced,
            "inside",
            beta,
            -(D - 1) * np.tanh(beta) ** 2 / D,
            "inside a cluster $log(1 − R)$ falls at $(d−1) tanh² β/d$",
        )
        for beta in BETAS
    ]
    between = [
        _rate(
            balanced,
            "between",
            beta,
            float(antipodal_exponent(beta, D)),
            "for the means $m$, $m′$ of both clusters $log |m + m′|²$ moves at the exponent"
            " of a pair, $((d−1)/cosh² β − 2)/d$",
        )
        for beta in BETAS
    ]
    return [*inside, *between, *_layers(unbalanced), _leaves(data["leaving"].to_dataset())]


def _rate(part: xr.Dataset, name: str, beta: float, expected: float, words: str) -> Claim:
    error = float(part[f"{name}_error"].sel(beta=beta))
    return Claim(
        f"{name}-{beta:g}",
        f"four tokens, two next to opposite places of two, $d = {D}$, $β = {beta:g}$: {words}",
        DERIVED,
        float(part[name].sel(beta=beta)),
        monte_carlo(expected, error, slack=H / 2),
        error=error,
        note=f"slack $h/2$ for layers of $h = {H}$",
    )


def _layers(part: xr.Dataset) -> list[Claim]:
    statements = []
    for beta in BETAS:
        expected = ONE * (D - 1) / (2 * D) * gap_of_clusters(beta, 1 / 3)
        error = float(part.unequal_error.sel(beta=beta))
        statements.append(
            Claim(
                f"pushed-{beta:g}",
                f"opposite clusters of masses 1 : 2, $β = {beta:g}$, $d = {D}$: one layer"
                " lifts $1 + R$ from 0 to $h (d−1)(c₁ − c₂)²/(2d)$, so they are not at rest",
                DERIVED,
                float(part.unequal.sel(beta=beta)),
                monte_carlo(expected, error, slack=2 * ONE * expected),
                error=error,
                note=f"$c = tanh(β ± ½ log ½)$; slack $2h$ of it for $h = {ONE}$",
            )
        )
    statements.append(
        Claim(
            "equal-rest",
            "opposite clusters of equal masses do not leave in a layer, $β = 1$ and 2, $d ="
            f" {D}$ (greatest mean of $1 + R$)",
            DERIVED,
            float(abs(part.equal).max()),
            at_most(1e-14),
        )
    )
    return statements


def _leaves(part: xr.Dataset) -> Claim:
    expected, error = leaving_time(BETAS[0], D, 1 / 3, H), float(part.mean_time_error)
    return Claim(
        "leaving",
        f"opposite clusters of masses 1 : 2, $β = 1$, $d = {D}$: mean time to $R = 0$",
        DERIVED,
        float(part.mean_time),
        monte_carlo(expected, error, slack=0.03 * expected),
        error=error,
        note=(
            f"continuous time ${leaving_time(BETAS[0], D, 1 / 3):.3f}$; the level is seen at"
            f" layers of $h = {H}$; ${float(part.censored):g}$ still there at $t = 60$"
        ),
    )

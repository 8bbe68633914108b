"""The circle: two clusters at $β = 4$, three at $β = 9$, and how long they live.

The phase diagram of $d = 2$, $n = 32$ through layers of $h = 0.1$, one run each at $β = 4$ and $β =
9$ at the times of the printed panels ($t = 0$, 18, 30), each from the first seed that ends with the
usual number of clusters, and the number of clusters of many systems at $t = 30$ (connected
components of pairs with cosine at least $1 − δ$, $δ = 1e-3$).

Lifetimes: $k$ equal clusters at the corners of a regular polygon are stationary and unstable. One
token stands for each cluster, the corners move by $1e-6$ along the fastest mode $cos(2 π ⌊k/2⌋
j/k)$, and the flow (RK4, 100 steps in a lifetime) is followed until the deviation has grown a
hundredfold. The slope of its logarithm is the growth rate, its inverse the lifetime, beside $1 /
max_p λ_p$ of the linearised equation. The same is done once through layers.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import ensemble, phase_diagram, simulate
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount
from tokenflock.papers.perspective._lifetimes import growth_rate, lifetime
from tokenflock.plots import circle, look, panels
from tokenflock.plots import phase_diagram as plot_map
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import polygon_lifetime

SOURCE = "Figure 4"
CAPTION = (
    "See stripes of constant pair density (the share of pairs of cosine above 0.999) on the "
    "circle: states of a few clusters, drawn beside at the three times that are marked (trails "
    "run inwards, to earlier times), which live as long as the lines below say."
)
N, H, TIMES = 32, 0.1, (0.0, 18.0, 30.0)
USUAL = {4.0: (2, 0.8), 9.0: (3, 0.6)}  # how many clusters, and how often at least
KINDS, BETAS = (2, 3, 4), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
NAMED = ((2, 4.0), (3, 4.0), (3, 9.0), (4, 9.0))


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    beta = scale.pick(quick=np.linspace(0.25, 9, 36), paper=np.linspace(0.1, 9, 90))
    repeats = scale.pick(quick=64, paper=1024)
    frames = scale.pick(quick=151, paper=200)
    start, solver = Uniform(n=N, d=2), Layer(h=H)
    parts = {
        "map": phase_diagram(
            SelfAttention(),
            start,
            beta=beta,
            frames=frames,
            repeats=repeats,
            progress=scale.progress,
        )
    }
    parts |= {f"run{usual:g}": _usual_run(usual) for usual in USUAL}
    systems = scale.pick(quick=1024, paper=4096)
    options = {
        "solver": solver,
        "observe": [ClusterCount()],
        "times": TIMES[1:],
        "repeats": systems,
        "keep": True,
    }
    parts["counts"] = ensemble(SelfAttention(), start, over={"beta": list(USUAL)}, **options)
    parts["lifetimes"] = _lifetimes()
    setting = (
        f"$n = 32$, $d = 2$, $h = 0.1$; map: {len(beta)} values of $β$ × {repeats} systems;"
        f" counts: {systems} systems; lifetimes: flow"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _usual_run(beta: float) -> xr.Dataset:
    """The run of the first seed that ends with the usual number of clusters."""
    for seed in range(100):
        run = simulate(
            SelfAttention(beta=beta),
            Uniform(n=N, d=2),
            t=TIMES[-1],
            frames=301,
            solver=Layer(h=H),
            observe=[ClusterCount()],
            seed=seed,
        )
        if int(run.cluster_count[-1]) == USUAL[beta][0]:
            break
    return run


def _lifetimes() -> xr.Dataset:
    """Growth rates of k equal clusters under the flow, and of two at beta = 4 through layers."""
    rates = [[growth_rate(k, beta) for beta in BETAS] for k in KINDS]
    layers = growth_rate(2, 4.0, Layer(h=H))
    return xr.Dataset(
        {"rate": (("k", "beta"), rates), "layer_rate": layers},
        coords={"k": list(KINDS), "beta": BETAS},
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(2, 4, size=(2.15, 2.6), gridspec_kw={"width_ratios": [1.75, 1, 1, 1]})
    _draw_map(axes[0], data["map"].to_dataset())
    _draw_lifetimes(axes[4], data["lifetimes"].to_dataset())
    for row, beta in enumerate((9.0, 4.0)):
        run = data[f"run{beta:g}"].to_dataset()
        for ax, t in zip(axes[4 * row + 1 : 4 * row + 4], TIMES):
            circle(run, ax=ax, at=t, tail=30)
            ax.set_title(rf"$\beta={beta:g}$,  $t={t:g}$")
    return figure


def _draw_map(ax: Axes, part: xr.Dataset) -> None:
    plot_map(part, ax=ax, curve=False, title=False)
    with look(ax) as theme:
        for beta in USUAL:
            ax.plot([0, 30], [beta, beta], color=theme.palette[1], linewidth=1)
            dots = {"color": theme.palette[1], "markeredgecolor": theme.ink, "markersize": 4.5}
            ax.plot(TIMES, [beta] * 3, "o", clip_on=False, zorder=5, **dots)
        ax.set_title("$d=2$, $n=32$")


def _draw_lifetimes(ax: Axes, part: xr.Dataset) -> None:
    fine = np.linspace(1, 9, 161)
    with look(ax) as theme:
        for colour, dash, k in zip(theme.palette, ("-", "--", "-."), KINDS):
            ax.plot(fine, polygon_lifetime(k, fine), dash, color=colour, label=f"{k} clusters")
            ax.plot(part.beta, 1 / part.rate.sel(k=k), "o", color=colour, markersize=4)
        ax.axhline(30, color=theme.soft, linewidth=0.8, linestyle=":")
        ax.annotate(
            "$t=30$",
            (9, 30),
            (0, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
            color=theme.soft,
        )
        ax.set(
            yscale="log",
            xlim=(0.7, 9.3),
            ylim=(0.7, 1e8),
            xlabel=r"inverse temperature $\beta$",
            ylabel="lifetime",
        )
        ax.legend(loc="upper left")
        ax.set_title("lifetimes: theory (lines), measured (dots)")


def live() -> tuple[SelfAttention, Uniform]:
    """The law of the picture, to be watched on the page."""
    return SelfAttention(beta=9.0), Uniform(n=32, d=2)


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    lifetimes = data["lifetimes"].to_dataset()
    statements = [_count_claim(data["counts"].to_dataset(), beta) for beta in USUAL]
    statements += [_lifetime_claim(lifetimes, k, beta) for k, beta in NAMED]
    ratio = float(lifetimes.rate.sel(k=2, beta=4.0) / lifetimes.layer_rate)
    slower = Claim(
        "drift",
        "through layers of $h = 0.1$ two opposite equal clusters at $β = 4$ leave their"
        " balance more slowly than along the flow, by the factor $1 + h$",
        "Figure 4 (layer map)",
        ratio,
        near(1 + H, 1e-4),
        note="the normalisation divides by $|x + h A x|$, which is $1 + h$ up to a multiple of"
        " $e^{−2β}$",
    )
    return [*statements, slower]


def _count_claim(counts: xr.Dataset, beta: float) -> Claim:
    usual, least = USUAL[beta]
    last = counts.cluster_count.sel(beta=beta, time=30.0).values
    share = float((last == usual).mean())
    others = ", ".join(f"{int(k)}: {float((last == k).mean()):.3f}" for k in np.unique(last))
    return Claim(
        f"count-{beta:g}",
        f"at $β = {beta:g}$, $d = 2$, $n = 32$ more than ${100 * least:g}$ % of systems have"
        f" {usual} clusters at $t = 30$ (layers)",
        "Figure 4",
        share,
        at_least(least),
        error=float(np.sqrt(share * (1 - share) / len(last))),
        note=f"shares of {len(last)} systems by number of clusters: {others}",
        erratum=(
            "The caption says $t = 2.5$, 18, 30; the printed panels are labelled $t = 0$, 18, 30."
            if beta == 4
            else ""
        ),
    )


def _lifetime_claim(part: xr.Dataset, k: int, beta: float) -> Claim:
    expected = lifetime(k, beta)
    return Claim(
        f"lifetime-{k}-{beta:g}",
        f"a small deviation of {k} equal clusters from a regular polygon at $β = {beta:g}$"
        f" grows by the factor $e$ in the time $1/max λ = {expected:.5g}$, their lifetime",
        "Figure 4, linearisation of (7.1)",
        float(1 / part.rate.sel(k=k, beta=beta)),
        near_relative(expected, 1e-6),
        note=f"${expected / TIMES[-1]:.3g}$ times the window $t ≤ 30$ of the figure",
    )

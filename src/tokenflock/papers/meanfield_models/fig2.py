"""Maximisers on the circle: one cluster, or a trap of two, for $D = diag(d, 1)$.

As published: $N = 100$ uniform tokens on the circle climb $E$ by layers $x ← normalize(x + h A x)$
with $h = 0.1$, for 20 values of $d$ from 0 to 1.5; 1500 layers and 100 runs for each $d$ at paper
scale, 1000 and 16 at quick scale. Clusters are connected sets of tokens closer than 0.1 to a
neighbour (the published count is by three means, merged below 0.1). The printed example has $D =
diag(1, 1.25)$, $h = 0.075$, 1400 layers. The Hessian at two opposite clusters comes from the
derivative of the library's field; the ends of the window without traps are its zeros in $d$. Masses
of a run that ended in two clusters follow from the length of its mean, $|2p − 1|$.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tokenflock import ensemble, simulate
from tokenflock.dynamics import Burger
from tokenflock.observables import ClusterCount, OrderParameter
from tokenflock.papers.meanfield_models._anisotropic import growth
from tokenflock.plots import circle, look, panels
from tokenflock.plots.styles import Axes, Figure, Theme
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import trap_window, two_cluster_growth

SOURCE = "Figure 2"
CAPTION = (
    "See the share of ascents that end in one cluster, the eigenvalue that says where two "
    "opposite clusters of masses $p$ and $1 − p$ trap them (marks, on the closed form), and one "
    "such trap."
)
TRAPS = "derived; Figure 2"
N, H, CLOSE = 100, 0.1, 0.1
VALUES = np.linspace(0, 1.5, 20)
MASSES = np.array([0.5, 0.4, 0.3])
FEW = 0.8  # a share of single clusters below this counts as trapped


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    runs, layers = scale.pick(quick=(16, 1000), paper=(100, 1500))
    parts = {
        "sweep": _sweep(runs, layers, scale),
        "hessian": _hessian(),
        "example": _example(scale.pick(quick=20, paper=50)),
    }
    setting = (
        f"$N = 100$, $d = 2$, $h = 0.1$, {layers} layers, {runs} runs for each of 20 values of"
        " $d$ from 0 to 1.5, $D = diag(d, 1)$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _sweep(runs: int, layers: int, scale: Scale) -> xr.Dataset:
    """Number of clusters and length of the mean of every run at its end."""
    ends = ensemble(
        Burger(D=np.eye(2)),
        Uniform(n=N, d=2),
        over={"D": np.array([np.diag([d, 1.0]) for d in VALUES])},
        repeats=runs,
        t=layers * H,
        times=[layers * H],
        solver=Layer(h=H),
        observe=[ClusterCount(radius=CLOSE), OrderParameter()],
        keep=True,
        progress=scale.progress,
    ).isel(time=-1, drop=True)
    return ends.rename(D="d").assign_coords(d=VALUES).drop_attrs()


def _top(d: float) -> int:
    """The axis of the larger eigenvalue of diag(d, 1)."""
    return 0 if d > 1 else 1


def _hessian() -> xr.Dataset:
    """Largest eigenvalue of the Hessian at masses p, 1 - p on the top axis, and where it vanishes
    for p = 1/2.
    """
    rates = [[growth(np.diag([d, 1.0]), p, _top(d)) for p in MASSES] for d in VALUES]
    ends = [
        brentq(lambda d: growth(np.diag([d, 1.0]), 0.5, _top(d)), *bracket, xtol=1e-12)
        for bracket in ((0.5, 0.95), (1.05, 1.5))
    ]
    return xr.Dataset(
        {"growth": (("d", "p"), rates), "end": ("side", ends)}, coords={"d": VALUES, "p": MASSES}
    )


def _example(count: int) -> xr.Dataset:
    """The case that the paper shows, D = diag(1, 1.25): the number of clusters in each run, and a
    run at rest with two.
    """
    more = {
        "t": 105.0,
        "times": [0, 105],
        "solver": Layer(h=0.075),
        "observe": [ClusterCount(radius=CLOSE)],
    }
    runs = [
        simulate(Burger(D=np.diag([1.0, 1.25])), Uniform(n=N, d=2), seed=seed, **more)
        for seed in range(count)
    ]
    clusters = np.array([int(run.cluster_count[-1]) for run in runs])
    # 1 where all are at the ends of the top axis
    along = [float((run.x[-1, :, 1] ** 2).mean()) for run in runs]
    return runs[int(np.argmax(np.where(clusters == 2, along, 0)))].assign(
        clusters=("run", clusters)
    )


def expected_growth(d: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The largest eigenvalue at two opposite clusters of masses p and 1 - p, for D = diag(d, 1)."""
    return two_cluster_growth(np.maximum(d, 1.0), np.minimum(d, 1.0), p)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, middle, right) = panels(1, 3, size=(3.1, 2.8))
    sweep, hessian = data["sweep"].to_dataset(), data["hessian"].to_dataset()
    with look(left) as theme:
        share, error = _share(sweep)
        _shade(left, theme)
        left.errorbar(
            sweep.d,
            100 * share,
            100 * error,
            fmt="o-",
            markersize=3.5,
            linewidth=1,
            capsize=2,
            color=theme.palette[0],
        )
        left.set(
            xlabel="$d$", ylabel="runs with one cluster (%)", xlim=(-0.03, 1.53), ylim=(-3, 105)
        )
        left.set_title(rf"Ascent for $D=\mathrm{{diag}}(d,1)$, $N={N}$")
    with look(middle) as theme:
        fine = np.linspace(0, 1.5, 301)
        _shade(middle, theme)
        middle.axhline(0, color=theme.soft, linewidth=0.6)
        for k, p in enumerate(hessian.p.values):
            middle.plot(
                fine,
                expected_growth(fine, p),
                color=theme.palette[k],
                linewidth=1,
                linestyle=("-", "--", ":")[k],
            )
            middle.plot(
                hessian.d,
                hessian.growth[:, k],
                "osD"[k],
                color=theme.palette[k],
                markersize=3,
                label=f"$p={p:g}$",
            )
        middle.set(xlabel="$d$", ylabel="largest eigenvalue", xlim=(-0.03, 1.53), ylim=(-1.6, 1))
        middle.legend(loc="upper left")
        middle.set_title("Hessian at two opposite clusters")
    circle(data["example"].to_dataset(), ax=right, tail=0)
    right.set_title("$D=\\mathrm{diag}(1,1.25)$, 1400 layers:\ntrapped in two clusters")
    return figure


def _shade(ax: Axes, theme: Theme) -> None:
    low, high = trap_window(1.0)
    ax.axvspan(low, high, color=theme.faint, alpha=0.45, linewidth=0)
    ax.text(
        (low + high) / 2,
        0.02,
        "no trap",
        transform=ax.get_xaxis_transform(),
        ha="center",
        color=theme.soft,
        fontsize=8,
    )


def _share(sweep: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The share of runs with one cluster, and its standard error."""
    single = (sweep.cluster_count == 1).mean("repeat").values
    return single, np.sqrt(single * (1 - single) / sweep.sizes["repeat"])


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_sweep_claims(data["sweep"].to_dataset()),
        *_hessian_claims(data["hessian"].to_dataset()),
        _example_claim(data),
    ]


def _sweep_claims(sweep: xr.Dataset) -> list[Claim]:
    (low, high), (share, _), d = trap_window(1.0), _share(sweep), sweep.d.values
    step = d[1] - d[0]
    core = (d > low + step) & (d < high - step)
    trapped = d[share < FEW]
    below, above = (
        trapped[trapped < low].max(initial=-np.inf),
        trapped[trapped > high].min(initial=np.inf),
    )
    edges = ", ".join(
        f"${share[k]:.2f}$ at $d = {d[k]:.3f}$"
        for k in np.flatnonzero((d > low) & (d < high) & ~core)
    )
    where = f"$D = diag(d, 1)$, $N = {N}$, {sweep.sizes['repeat']} runs for each $d$"
    return [
        Claim(
            "inside",
            f"{where}: every run ends in one cluster for the values of $d$ at least one step"
            f" of the sweep inside the window $({low:.4f}, {high:.4f})$ (least share)",
            TRAPS,
            float(share[core].min()),
            at_least(1),
            note=f"next to the ends pairs are unstable but leave slowly: the share is {edges}",
        ),
        Claim(
            "low",
            f"{where}: the greatest $d$ of the sweep below the window ($tanh 1 = {low:.4f}$)"
            " at which fewer than 80 % of the runs end in one cluster is within a step of"
            " it",
            "Figure 2",
            float(below),
            between(low - step, low),
            note=f"the values of $d$ are ${step:.4f}$ apart",
        ),
        Claim(
            "high",
            f"{where}: the least $d$ of the sweep above the window ($d tanh d = 1$, $d ="
            f" {high:.4f}$) at which fewer than 80 % of the runs end in one cluster is"
            " within a step of it",
            "Figure 2",
            float(above),
            between(high, high + step),
        ),
        Claim(
            "zero",
            f"{where}: no run ends in one cluster at $d = 0$",
            "Figure 2",
            float(share[0]),
            between(0, 0),
        ),
        Claim(
            "beyond",
            f"{where}: beyond the window, at $d = 1.5$, at most a fifth of the runs end in"
            " one cluster (share)",
            "Figure 2",
            float(share[-1]),
            at_most(0.2),
        ),
        _stable_claim(sweep),
    ]


def _stable_claim(sweep: xr.Dataset) -> Claim:
    (low, high), d = trap_window(1.0), sweep.d.values[:, None]
    two = (sweep.cluster_count.values == 2) & ((d < low) | (d > high))
    p = np.clip((1 + sweep.order_parameter.values.astype(float)) / 2, 0.5, 1 - 1e-9)
    # opposite, so that |2p - 1| is the length of the mean
    rest = two & (np.abs(N * p - np.round(N * p)) < 0.01)
    rate = expected_growth(d, p)[rest]
    edge = rest & (expected_growth(d, p[rest].max(initial=0.5)) > 0)
    values = [f"{value:.3f}" for value in sweep.d.values[edge.any(axis=1)]]
    return Claim(
        "stable",
        "the pairs of clusters in which runs have come to rest outside that window are"
        f" stable at their own masses $p$, $1 − p$ (share of such pairs, of {rest.sum()}, at"
        " which the Hessian is negative definite)",
        TRAPS,
        float((rate < 0).mean()),
        at_least(1),
        note=(
            f"{int(edge.sum())} of them at $d = {', '.join(values)}$, where masses seen"
            f" elsewhere would be unstable; the largest eigenvalue is ${rate.max():.3f}$"
        ),
    )


def _hessian_claims(hessian: xr.Dataset) -> list[Claim]:
    off = np.abs(
        hessian.growth.values - expected_growth(hessian.d.values[:, None], hessian.p.values)
    ).max()
    statements = [
        Claim(
            "hessian",
            "the Hessian at masses $p$, $1 − p$ on the top axis of $D = diag(d, 1)$ has the"
            " largest eigenvalue of the closed form (greatest difference; 20 values of $d$,"
            " $p = 0.5$, 0.4, 0.3)",
            TRAPS,
            float(off),
            between(0, 1e-12),
        ),
    ]
    for name, end, exact in zip(("low", "high"), hessian.end.values, trap_window(1.0)):
        rule = "$d = tanh 1$" if name == "low" else "$d tanh d = 1$"
        statements.append(
            Claim(
                f"{name}-exact",
                f"for $p = ½$ the Hessian at $±e_{2 if name == 'low' else 1}$ becomes"
                f" singular at {rule}, $d = {exact:.10f}$",
                TRAPS,
                float(end),
                near(exact, 1e-9),
            )
        )
    return statements


def _example_claim(data: xr.DataTree) -> Claim:
    clusters = data["example"].clusters.values
    runs = len(clusters)
    return Claim(
        "example",
        "$D = diag(1, 1.25)$, $N = 100$, 1400 layers of $h = 0.075$: at least one run is"
        f" trapped and at least one is not (share of the {runs} runs that do not end in one"
        " cluster)",
        "Figure 2",
        float((clusters != 1).mean()),
        between(1 / runs, (runs - 1) / runs),
        note=(
            f"{(clusters == 2).sum()} runs end in two clusters, {(clusters > 2).sum()} in"
            " more; $5/4 > 1.1997$: two clusters can survive, and whether they do depends"
            " on the start"
        ),
    )

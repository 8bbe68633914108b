"""Two time scales: clusters form fast and merge slowly.

Pairs: two tokens, each standing for a cluster, follow the flow of SA from an angle $φ_0$ until
their cosine is 0.999 (adaptive, tolerance $1e-9$), for $β$ from 1 to 10; the closed form of the
merging time is beside. Its exponent $c$ in $e^(c β)$ is the slope of $log(β T)$, since $T ∼ e^(β (1
− cos φ_0)) / (2 β sin^2 φ_0)$.

Polygons: the lifetime of two and of three equal clusters is measured as in Figure 4. Theory has $(1
+ e^(2 β)) / 2$ for two, a multiple of $e^(3 β / 2) / (β + 2/3)$ for three, so the exponent of three
is the slope of $log((β + 2/3) T)$.

Systems: 32 uniform tokens on the circle at $β = 4$ follow the flow until all cosines are 0.999.
Clusters have formed when 3 or fewer are left ($δ = 1e-3$). When two are left and have shrunk to
points, their masses and their angle give by the closed form the time of the last merge, which is
compared with the one that is seen.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import measure, simulate
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.observables import ClusterCount, ClusterLabels, Convention, Energy
from tokenflock.papers.perspective._lifetimes import growth_rate, lifetime
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Given, Uniform
from tokenflock.theory import merging_time, polygon_lifetime

SOURCE = "Section 6.3, Problem 1"
CAPTION = (
    "See the energy of 16 systems climb fast to plateaus, wait there, and jump to 1; "
    "lifetimes of such states, measured (dots), lie on the theory (lines)."
)
N, BETA, DELTA = 32, 4.0, 1e-3
ANGLES = {"pi/2": np.pi / 2, "2pi/3": 2 * np.pi / 3, "3": 3.0}
BETAS = np.arange(1.0, 11.0)
POLYGON_BETAS = np.arange(2.0, 10.0)
TIMES = np.geomspace(0.1, 1e5, 241)
NAMES = {"formed": "three clusters left", "merged": "one cluster left"}
# after so long in one stage clusters are points to seven digits: their width falls like e^(-t)
SETTLED = 15.0


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    seeds = scale.pick(quick=16, paper=64)
    merged = [[_pair(angle, beta) for beta in BETAS] for angle in ANGLES.values()]
    pairs = xr.Dataset(
        {"merged": (("angle", "beta"), merged)}, coords={"angle": list(ANGLES), "beta": BETAS}
    )
    rates = [[growth_rate(k, beta) for beta in POLYGON_BETAS] for k in (2, 3)]
    polygons = xr.Dataset(
        {"rate": (("k", "beta"), rates)}, coords={"k": [2, 3], "beta": POLYGON_BETAS}
    )
    systems = xr.concat([_system(seed) for seed in range(seeds)], "seed")
    setting = (
        f"flow of SA; systems: $n = 32$, $d = 2$, $β = 4$, {seeds} seeds; pairs: $β = 1$ to 10;"
        " polygons: $β = 2$ to 9"
    )
    parts = {
        "/": xr.Dataset(attrs={"setting": setting}),
        "pairs": pairs,
        "polygons": polygons,
        "systems": systems,
    }
    return xr.DataTree.from_dict(parts)


def _pair(angle: float, beta: float) -> float:
    """When two tokens that start at an angle have met."""
    start = Given(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
    limit = 2 * float(merging_time(angle, beta, DELTA))
    run = simulate(SelfAttention(beta=beta), start, t=limit, frames=3, until=Consensus(delta=DELTA))
    return float(run.time[-1])


def _system(seed: int) -> xr.Dataset:
    """Energy and number of clusters of one system against time, and when it formed clusters,
    merged, and should have merged.
    """
    law, start = SelfAttention(beta=BETA), Uniform(n=N, d=2)
    run = simulate(law, start, t=TIMES[-1], times=TIMES, until=Consensus(delta=DELTA), seed=seed)
    end = float(run.time[-1])
    run = run.reindex(time=TIMES, method="ffill")  # what has met stays together
    run = measure(
        run,
        [
            Energy(convention=Convention.STAIRCASE),
            ClusterCount(delta=DELTA),
            ClusterLabels(delta=DELTA),
        ],
    )
    formed = float(TIMES[np.argmax(run.cluster_count.values <= 3)])
    numbers = {
        "energy": run.energy.variable,
        "formed": formed,
        "merged": end,
        "predicted": _prediction(run, end),
    }
    return xr.Dataset(numbers, coords={"time": TIMES})


def _prediction(run: xr.Dataset, end: float) -> float:
    """When the last two clusters of a run should merge, by masses and angle once they are points.

    Nan if they never are.
    """
    two = run.time.values[run.cluster_count.values == 2]
    late = two[(two > two[0] + SETTLED) & (two < end)] if len(two) else two
    if len(late) == 0:
        return np.nan
    frame = run.sel(time=late[0])
    labels = frame.cluster_labels.values
    centre = [frame.x.values[labels == label].mean(axis=0) for label in np.unique(labels)]
    mass = float((labels == labels[0]).mean())
    angle = np.angle(complex(*centre[0]) * complex(*centre[1]).conjugate())
    return float(late[0] + merging_time(abs(angle), BETA, DELTA, mass))


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(4.3, 3.2))
    _draw_stairs(left, data["systems"].to_dataset())
    _draw_exponents(right, data)
    return figure


def _draw_stairs(ax: Axes, systems: xr.Dataset) -> None:
    with look(ax) as theme:
        ax.plot(
            systems.time,
            systems.energy.transpose("time", "seed"),
            color=theme.palette[0],
            linewidth=0.7,
            alpha=0.55,
        )
        for k in (3, 2):
            life = lifetime(k, BETA)
            ax.plot([life, life], [0, 0.1], color=theme.palette[2])
            ax.annotate(
                f"{k} equal clusters\nlive {life:.0f}",
                (life, 0.115),
                ha="center",
                va="bottom",
                color=theme.palette[2],
            )
        for name, mark in (("formed", "v"), ("merged", "^")):
            ax.plot(
                systems[name],
                np.full(systems.sizes["seed"], 1.04),
                mark,
                color=theme.ink,
                markersize=3.5,
                label=NAMES[name],
            )
        ax.set(
            xscale="log",
            xlim=(0.1, 3e4),
            ylim=(0, 1.1),
            xlabel="time $t$ (flow)",
            ylabel="energy (1 at consensus)",
        )
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.93))
        ax.set_title(rf"{systems.sizes['seed']} systems, $n=32$, $d=2$, $\beta=4$")


def _draw_exponents(ax: Axes, data: xr.DataTree) -> None:
    pairs, polygons = data["pairs"].to_dataset(), data["polygons"].to_dataset()
    labels = {"pi/2": r"pair from $\pi/2$", "2pi/3": r"pair from $2\pi/3$", "3": "pair from 3 rad"}
    with look(ax) as theme:
        for colour, (name, angle) in zip(theme.palette, ANGLES.items()):
            ax.plot(BETAS, merging_time(angle, BETAS, DELTA), color=colour, label=labels[name])
            ax.plot(BETAS, pairs.merged.sel(angle=name), "o", color=colour, markersize=3.8)
        for colour, k in zip(theme.palette[3:], (2, 3)):
            ax.plot(
                POLYGON_BETAS,
                polygon_lifetime(k, POLYGON_BETAS),
                "--",
                color=colour,
                label=f"{k} equal clusters",
            )
            ax.plot(POLYGON_BETAS, 1 / polygons.rate.sel(k=k), "s", color=colour, markersize=3.6)
        ax.set(
            yscale="log",
            xlim=(0.7, 10.3),
            xlabel=r"inverse temperature $\beta$",
            ylabel="merging time, lifetime",
        )
        ax.legend(loc="upper left")
        ax.set_title("theory (lines) and measured (dots)")


def live() -> tuple[SelfAttention, Uniform]:
    """The law of the picture, to be watched on the page."""
    return SelfAttention(beta=4.0), Uniform(n=32, d=2)


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    pairs, polygons = data["pairs"].to_dataset(), data["polygons"].to_dataset()
    return [
        *_pair_claims(pairs),
        *_polygon_claims(polygons),
        *_system_claims(data["systems"].to_dataset()),
    ]


def _pair_claims(pairs: xr.Dataset) -> list[Claim]:
    exact = np.array([merging_time(angle, BETAS, DELTA) for angle in ANGLES.values()])
    named = float(merging_time(ANGLES["2pi/3"], BETA, DELTA))
    return [
        Claim(
            "merging",
            "two equal clusters at the angle $2π/3$ meet (cosine 0.999) at $β = 4$ after $t"
            f" = {named:.6f}$",
            "Section 6.3, (6.9) for $n = 2$",
            float(pairs.merged.sel(angle="2pi/3", beta=BETA)),
            near_relative(named, 1e-7),
        ),
        Claim(
            "merging-all",
            "merging times from the angles $π/2$, $2π/3$ and 3 for $β = 1$ to 10 follow the"
            " closed form: largest relative error",
            "Section 6.3, (6.9) for $n = 2$",
            float(np.abs(pairs.merged.values / exact - 1).max()),
            at_most(1e-8),
            note=f"they run from ${exact.min():.3g}$ to ${exact.max():.3g}$",
        ),
        _angle_claim(pairs, "pi/2", "π/2"),
        _angle_claim(pairs, "2pi/3", "2π/3"),
    ]


def _angle_claim(pairs: xr.Dataset, name: str, text: str) -> Claim:
    late = pairs.merged.sel(angle=name, beta=slice(7, None))
    c, beta = 1 - np.cos(ANGLES[name]), late.beta.values

    def fitted(beta: np.ndarray, times: np.ndarray) -> float:
        return slope(beta, np.log(times * beta))

    def exact(beta: np.ndarray) -> float:
        return fitted(beta, np.asarray(merging_time(ANGLES[name], beta, DELTA)))

    return Claim(
        f"exponent-{name.replace('/', '-')}",
        f"from the angle $φ₀ = {text}$ the merging time grows like $e^(cβ)/β$ with $c → 1 −"
        f" cos φ₀ = {c:g}$: fitted $c$",
        "Problem 1; closed form of (6.9) for $n = 2$",
        fitted(beta, late.values),
        near(exact(beta), 1e-6),
        note=(
            "fit over $β = 7$ to 10, where the closed form has this slope; over $β = 17$ to"
            f" 20 it has ${exact(beta + 10):.4f}$"
        ),
    )


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of the straight line through points, by least squares."""
    return float(np.polyfit(x, y, 1)[0])


def _polygon_claims(polygons: xr.Dataset) -> list[Claim]:
    late = polygons.sel(beta=slice(5, None))
    beta, two, three = (
        late.beta.values,
        -np.log(late.rate.sel(k=2).values),
        -np.log(late.rate.sel(k=3).values),
    )
    return [
        Claim(
            "exponent-2",
            "the lifetime of two opposite equal clusters, $(1 + e^(2β))/2$, grows like"
            " $e^(cβ)$ with $c = 2$",
            "Problem 1, linearisation of (7.1)",
            slope(beta, two),
            near(2, 1e-4),
            note="fit over $β = 5$ to 9",
        ),
        Claim(
            "exponent-3",
            "the lifetime of three equal clusters grows like $e^(cβ)/(β + 2/3)$ with $c = 3/2$",
            "Problem 1, linearisation of (7.1)",
            slope(beta, three + np.log(beta + 2 / 3)),
            near(1.5, 1e-3),
            note=(
                "fit over $β = 5$ to 9; without the factor $β + 2/3$ it would be"
                f" ${slope(beta, three):.3f}$"
            ),
        ),
    ]


def _system_claims(systems: xr.Dataset) -> list[Claim]:
    formed, merged, predicted = (
        systems.formed.values,
        systems.merged.values,
        systems.predicted.values,
    )
    known = np.isfinite(predicted)
    error = float(np.abs(predicted[known] / merged[known] - 1).max()) if known.any() else np.nan
    return [
        Claim(
            "formed",
            "$n = 32$, $d = 2$, $β = 4$: three or fewer clusters are left by $t = 10$"
            " (median over seeds)",
            "Section 6.3, Problem 1",
            float(np.median(formed)),
            at_most(10.0),
            note=f"${formed.min():.3g}$ to ${formed.max():.3g}$ over {len(formed)} seeds",
        ),
        Claim(
            "separation",
            "$n = 32$, $d = 2$, $β = 4$: the last merge comes more than fifty times later"
            " (ratio of medians)",
            "Section 6.3, Problem 1",
            float(np.median(merged) / np.median(formed)),
            at_least(50.0),
            note=(
                f"last merge at ${merged.min():.3g}$ to ${merged.max():.4g}$, median"
                f" ${np.median(merged):.4g}$"
            ),
        ),
        Claim(
            "last-merge",
            "$n = 32$, $d = 2$, $β = 4$: the last merge comes when the closed form for two"
            " clusters of the masses and the angle seen long before it says (largest"
            " relative error)",
            "Section 6.3, (SA) for two clusters",
            error,
            at_most(1e-7),
            note=f"{int(known.sum())} of {len(merged)} seeds had two clusters for long",
        ),
    ]

"""Indefinite $D = diag(−1, d_2)$: one cluster or two opposite ones, and where the ascent is
trapped.

The energies of the three candidates, one cluster at $e_2$ and two equal opposite clusters at $±e_1$
or $±e_2$, are those of the library for $d_2$ from $−1$ to 1 (100 values); the crossing is a zero of
their difference. The ascent: $N = 100$ uniform tokens on the circle, layers of $h = 0.1$ up to $t =
100$, 11 values of $d_2$ with 8 runs each (41 with 50 at paper scale), and 12 runs at $d_2 = 0.6$
and at $d_2 = 1$. Two equal clusters at $±e_1$ stay a local maximum as long as the Hessian, from the
derivative of the library's field, is negative, also for clusters cut in two halves that may part:
up to $d_2 = tanh 1$, far beyond the crossing. The least energy, for $d_2 = 0.5$, is found with 50
tokens by the quasi-Newton optimiser.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tokenflock import ensemble, simulate
from tokenflock.dynamics import Burger
from tokenflock.meanfield import optimal_tokens
from tokenflock.observables import FlowEnergy, OrderParameter
from tokenflock.papers.meanfield_models._anisotropic import energy, growth
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import antipodal_energy, maximiser_crossing, two_cluster_growth

SOURCE = "Figure 7"
CAPTION = (
    "See which candidate has most energy for $D = diag(−1, d_2)$, one cluster or two opposite"
    " ones, where the ascents end (dots), and where two clusters become unstable."
)
ASCENT = "not in print; ascent beside Figure 7"
VALUES = np.linspace(-1, 1, 100)
TRAP = 0.6
NAMES = ("one at e2", "two at e1", "two at e2")


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    few = np.array([-1, -0.5, 0, 0.2, 0.4, 0.5, TRAP, 0.7, 0.8, 0.9, 1])
    d2 = scale.pick(quick=few, paper=np.unique(np.append(np.linspace(-1, 1, 41), TRAP).round(12)))
    parts = {
        "candidates": _candidates(),
        "ascent": _ascent(d2, scale.pick(quick=8, paper=50), scale),
        "ends": _ends(12),
        "least": _least(4),
    }
    setting = (
        "$D = diag(−1, d_2)$, 100 values of $d_2$ from $−1$ to 1; ascent: $N = 100$, $h = 0.1$,"
        f" 1000 layers, {len(d2)} values of $d_2$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _states(d2: float) -> list[float]:
    """Energies of the three candidates."""
    D, half, axes = np.diag([-1.0, d2]), np.full(2, 0.5), np.eye(2)
    return [energy(D, axes[1:], np.ones(1)), *(energy(D, np.stack([z, -z]), half) for z in axes)]


def _candidates() -> xr.Dataset:
    crossing = brentq(lambda d2: _states(d2)[0] - _states(d2)[1], 0, 1, xtol=1e-13)
    release = brentq(lambda d2: growth(np.diag([-1.0, d2]), parts=2), 0.2, 1, xtol=1e-13)
    rates = [growth(np.diag([-1.0, d2])) for d2 in VALUES]
    return xr.Dataset(
        {
            "energy": (("d2", "state"), [_states(d2) for d2 in VALUES]),
            "growth": ("d2", rates),
            "crossing": crossing,
            "release": release,
            "below": max(
                growth(np.diag([-1.0, d2]), parts=2) for d2 in VALUES if -1 < d2 < np.tanh(1)
            ),
        },
        coords={"d2": VALUES, "state": list(NAMES)},
    )


def _ascent(d2: np.ndarray, runs: int, scale: Scale) -> xr.Dataset:
    """Energy at the end of every run."""
    matrices = np.array([np.diag([-1.0, value]) for value in d2])
    ends = ensemble(
        Burger(D=np.eye(2)),
        Uniform(n=100, d=2),
        over={"dynamics.D": matrices},
        repeats=runs,
        t=100.0,
        times=[100.0],
        solver=Layer(h=0.1),
        observe=[FlowEnergy(), OrderParameter()],
        keep=True,
        dtype="float64",
        progress=scale.progress,
    ).isel(time=-1, drop=True)
    return ends.rename({"dynamics.D": "d2"}).assign_coords(d2=d2).drop_attrs()


def _ends(count: int) -> xr.Dataset:
    """Energy and mean x_2^2 at the end of runs in the trap and beyond it."""
    more = {"t": 100.0, "times": [100.0], "solver": Layer(h=0.1), "observe": [FlowEnergy()]}
    rows = []
    for d2 in (TRAP, 1.0):
        law = Burger(D=np.diag([-1.0, d2]))
        runs = [
            simulate(law, Uniform(n=100, d=2), seed=seed, **more).isel(time=-1)
            for seed in range(count)
        ]
        rows.append([(float(run.flow_energy), float((run.x[:, 1] ** 2).mean())) for run in runs])
    energies, second = np.moveaxis(np.array(rows), -1, 0)
    return xr.Dataset(
        {"energy": (("d2", "run"), energies), "second": (("d2", "run"), second)},
        coords={"d2": [TRAP, 1.0]},
    )


def _least(count: int) -> xr.Dataset:
    """Least energies of 50 tokens for d2 = 0.5, and their mean x_1."""
    runs = [optimal_tokens(np.diag([-1.0, 0.5]), n=50, seed=seed) for seed in range(count)]
    means = [float(run.x[:, 0].mean()) for run in runs]
    return xr.Dataset(
        {"energy": ("run", [float(run.energy) for run in runs]), "mean": ("run", means)}
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.6, 2.9), width_ratios=(1.25, 1))
    states, runs = data["candidates"].to_dataset(), data["ascent"].to_dataset()
    _draw_candidates(left, states, runs)
    _draw_hessian(right, states)
    return figure


def _draw_candidates(ax: Axes, states: xr.Dataset, runs: xr.Dataset) -> None:
    """Energies of the candidates, and where runs end."""
    labels = (
        r"$e^{d_2}$: one cluster at $e_2$",
        r"$\cosh 1$: two equal at $\pm e_1$",
        r"$\cosh d_2$: two equal at $\pm e_2$",
    )
    with look(ax) as theme:
        for k, (name, label) in enumerate(zip(NAMES, labels)):
            ax.plot(
                states.d2,
                states.energy.sel(state=name),
                ("-", "--", ":")[k],
                color=theme.palette[k],
                label=label,
            )
        d2 = np.repeat(runs.d2.values, runs.sizes["repeat"])
        ax.plot(
            d2,
            runs.flow_energy.values.ravel(),
            "o",
            markersize=3.5,
            color=theme.ink,
            markerfacecolor="none",
            label="ascent, runs (any masses)",
        )
        ax.axvline(float(states.crossing), color=theme.soft, linewidth=0.6)
        ax.annotate(
            r"$\ln\cosh 1$",
            (float(states.crossing), 0.42),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            color=theme.soft,
        )
        ax.set(xlabel="$d_2$", ylabel="energy $E$", xlim=(-1.03, 1.03), ylim=(0.3, 2.8))
        ax.legend(loc="upper left")
        ax.set_title(r"Candidates for $D=\mathrm{diag}(-1,d_2)$")


def _draw_hessian(ax: Axes, states: xr.Dataset) -> None:
    """The largest eigenvalue at two clusters."""
    with look(ax) as theme:
        ax.axhline(0, color=theme.soft, linewidth=0.6)
        ax.plot(
            states.d2,
            two_cluster_growth(-1.0, states.d2.values),
            color=theme.palette[1],
            linewidth=1,
            label="closed form",
        )
        ax.plot(
            states.d2[::6],
            states.growth[::6],
            "o",
            color=theme.palette[0],
            markersize=3.5,
            label="derivative of the field",
        )
        ax.axvspan(
            float(states.crossing),
            float(states.release),
            color=theme.faint,
            alpha=0.45,
            linewidth=0,
        )
        middle = (float(states.crossing) + float(states.release)) / 2
        ax.text(
            middle,
            0.03,
            "trap",
            transform=ax.get_xaxis_transform(),
            ha="center",
            color=theme.soft,
        )
        ax.set(xlabel="$d_2$", ylabel="largest eigenvalue", xlim=(-1.03, 1.03))
        ax.legend(loc="upper left")
        ax.set_title(r"Hessian at two clusters $\pm e_1$")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_state_claims(data["candidates"].to_dataset()),
        *_ascent_claims(data["ascent"].to_dataset()),
        *_end_claims(data["ends"].to_dataset()),
        *_least_claims(data["least"].to_dataset()),
    ]


def _state_claims(states: xr.Dataset) -> list[Claim]:
    d2 = states.d2.values
    exact = np.stack(
        [np.exp(d2), np.full(len(d2), antipodal_energy(-1.0)), antipodal_energy(d2)], axis=1
    )
    crossing = float(maximiser_crossing(1.0))
    rates = np.abs(states.growth.values - two_cluster_growth(-1.0, d2)).max()
    where, derived = "Figure 7; indefinite case", "derived; Figure 7"
    return [
        Claim(
            "curves",
            "$D = diag(−1, d_2)$: one cluster at $e_2$ has $E = e^{d_2}$, two equal ones at"
            " $±e_1$ have $cosh 1$, at $±e_2$ $cosh d_2$ (greatest difference, 100 values of $d_2$"
            " from $−1$ to 1)",
            where,
            float(np.abs(states.energy.values - exact).max()),
            between(0, 1e-14),
        ),
        Claim(
            "crossing",
            f"one cluster overtakes two at $d_2 = ln cosh 1 = {crossing:.10f}$",
            where,
            float(states.crossing),
            near(crossing, 1e-9),
        ),
        Claim(
            "hessian",
            "$D = diag(−1, d_2)$: the Hessian at two equal clusters $±e_1$ has the largest"
            " eigenvalue of the closed form (greatest difference, 100 values of $d_2$)",
            derived,
            float(rates),
            between(0, 1e-12),
        ),
        Claim(
            "release",
            "two equal clusters at $±e_1$, each cut in two halves, stay a strict local"
            f" maximum on the circle for $−1 < d_2 < tanh 1 = {np.tanh(1):.10f}$ (zero of"
            " the largest eigenvalue)",
            derived,
            float(states.release),
            near(np.tanh(1), 1e-9),
            note=(
                f"below, on the grid of $d_2$, it is at most ${float(states.below):.3f}$;"
                " between $ln cosh 1$ and $tanh 1$ they are a trap"
            ),
        ),
    ]


def _ascent_claims(runs: xr.Dataset) -> list[Claim]:
    d2, E = runs.d2.values, runs.flow_energy.values
    best = np.maximum(np.exp(d2), np.cosh(1))
    # nearer to -1 pairs turn to e_1 slowly
    before = (d2 >= -0.8) & (d2 < float(maximiser_crossing(1.0)))
    excess = runs.order_parameter.values[before]  # |2p - 1| of opposite clusters
    pairs = antipodal_energy(-1.0, (1 + excess) / 2)
    return [
        Claim(
            "most",
            f"no run of the ascent ends above $max(e^{{d_2}}, cosh 1)$ (greatest ratio; $N ="
            f" 100$, {E.size} runs, {len(d2)} values of $d_2$ from $−1$ to 1)",
            ASCENT,
            float((E / best[:, None]).max()),
            between(0.999, 1 + 1e-12),
        ),
        Claim(
            "before",
            "before the crossing the ascent ends in two opposite clusters, with the energy"
            " of their masses at $±e_1$ (greatest relative difference over runs with $−0.8"
            " ≤ d_2 < ln cosh 1$)",
            ASCENT,
            float(np.abs(E[before] / pairs - 1).max()),
            between(0, 1e-6),
            note=(
                f"the larger has up to ${100 * (1 + excess.max()) / 2:.0f}$ of 100 tokens;"
                f" $E/cosh 1$ is at least ${E[before].min() / np.cosh(1):.4f}$"
            ),
        ),
    ]


def _end_claims(ends: xr.Dataset) -> list[Claim]:
    trapped, free = (ends.isel(d2=k) for k in (0, 1))
    caught = int((free.energy < 0.99 * np.e).sum())
    return [
        Claim(
            "trapped",
            "beyond the crossing the ascent is trapped: at $d_2 = 0.6$ no run of"
            f" {trapped.sizes['run']} finds $e^{{0.6}} = 1.822$, nor more than $cosh 1 ="
            " 1.543$ (greatest $E$)",
            ASCENT,
            float(trapped.energy.max()),
            between(1, np.cosh(1) + 1e-9),
            note=f"all end at $±e_1$: greatest mean of $x_2²$ ${float(trapped.second.max()):.0e}$",
        ),
        Claim(
            "free",
            f"at $d_2 = 1 > tanh 1$ no run of {free.sizes['run']} stays at $±e_1$ (least"
            " mean $x_2²$)",
            ASCENT,
            float(free.second.min()),
            between(1 - 1e-6, 1 + 1e-12),
            note=(
                f"{caught} of them are caught by another trap, two clusters at $±e_2$; the"
                f" others find $e^{{d_2}}$"
            ),
        ),
    ]


def _least_claims(least: xr.Dataset) -> list[Claim]:
    where, runs = "Minimisers, indefinite case", least.sizes["run"]
    return [
        Claim(
            "least",
            f"$λ_min ≤ −λ_max$: the least energy is $e^{{λ_min}}$: $D = diag(−1, 0.5)$, $N ="
            f" 50$ tokens, quasi-Newton from {runs} random starts (greatest $|E e − 1|$)",
            where,
            float(np.abs(least.energy * np.e - 1).max()),
            between(0, 1e-12),
        ),
        Claim(
            "least-cluster",
            "there all tokens are in one cluster $δ_z$ at $z = e_1$ or $z = −e_1$, the"
            " eigenvectors of $λ_min$ (least $|mean x_1|$)",
            where,
            float(np.abs(least["mean"]).min()),
            between(1 - 1e-9, 1 + 1e-12),
        ),
    ]

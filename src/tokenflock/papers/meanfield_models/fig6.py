"""Maximisers for negative semidefinite $D$: two opposite clusters.

As published: $N = 100$ uniform tokens on $S^2$ climb $E$ by 500 layers of $h = 0.1$, for $D = −I$
(6 runs), $D = −diag(1, 3, 4)$ (100 runs; 12 at quick scale) and $D = diag(−1, 0, 0)$ (10 runs). For
$D = −I$ an ensemble of more runs gives the law of the masses, from the length $|2p − 1|$ of the
mean. Stability: the Hessian, from the derivative of the library's field, at masses $p$, $1 − p$ at
opposite points, each cut in two halves that may part; the ends of the stable range are its zeros in
$p$. The bound $cosh c$ is compared with the energy of random weighted measures of 8 tokens for
random $D$.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tokenflock import ensemble, simulate
from tokenflock.dynamics import Burger
from tokenflock.observables import FlowEnergy, OrderParameter
from tokenflock.papers.meanfield_models._anisotropic import energy, hessian
from tokenflock.papers.meanfield_models._balls import ball
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import antipodal_energy

SOURCE = "Figure 6"
CAPTION = (
    "See tokens under a negative $D$ gather in two opposite clusters, whose energy lies on the"
    " closed form (line), greatest for equal masses."
)
DERIVED = "derived; Figure 6"
N, END, SEED = 100, 50.0, 142
CASES = {
    "minus identity": (-1.0, -1.0, -1.0),
    "distinct": (-1.0, -3.0, -4.0),
    "one axis": (-1.0, 0.0, 0.0),
}
AXES = {"distinct": 2, "one axis": 0}
LAYERS = {"t": END, "solver": Layer(h=0.1)}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    counts = {"minus identity": 6, "distinct": scale.pick(quick=12, paper=100), "one axis": 10}
    parts = {f"runs/{name}": _runs(np.diag(D), counts[name]) for name, D in CASES.items()}
    parts |= {
        "masses": _masses(scale),
        "stability": _stability(),
        "bound": _bound(scale.pick(quick=100, paper=5000)),
    }
    setting = (
        "$N = 100$, $d = 3$, 500 layers of $h = 0.1$; $D = −I$, $−diag(1, 3, 4)$, $diag(−1, 0, 0)$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _runs(D: np.ndarray, count: int) -> xr.Dataset:
    """Where each run ends, and its energy."""
    options = {"times": [END], "observe": [FlowEnergy()], **LAYERS}
    runs = [
        simulate(Burger(D=D), Uniform(n=N, d=3), seed=SEED + k, **options).isel(time=-1)
        for k in range(count)
    ]
    x = np.stack([run.x.values for run in runs])
    return xr.Dataset(
        {
            "x": (("run", "particle", "coord"), x),
            "energy": ("run", [float(run.flow_energy) for run in runs]),
        }
    )


def _masses(scale: Scale) -> xr.Dataset:
    """|2p - 1| of many runs for D = -I."""
    runs = ensemble(
        Burger(D=-np.eye(3)),
        Uniform(n=N, d=3),
        repeats=scale.pick(quick=64, paper=1000),
        times=[END],
        observe=[OrderParameter()],
        keep=True,
        progress=scale.progress,
        **LAYERS,
    )
    return runs.isel(time=-1, drop=True).drop_attrs()


def _stability() -> xr.Dataset:
    """By p, for D = -I on the circle: how fast the halves of either cluster part, and where that
    begins.
    """
    p = np.linspace(0.02, 0.98, 49)
    ends = [brentq(parting, *sides, xtol=1e-13) for sides in ((0.02, 0.5), (0.5, 0.98))]
    return xr.Dataset(
        {"parting": ("p", [parting(share) for share in p]), "end": ("side", ends)}, coords={"p": p}
    )


def parting(p: float) -> float:
    """The larger rate of E along (1, -1) of the halves of one cluster: its second derivative over
    the masses moved.
    """
    w = np.array([p, p, 1 - p, 1 - p]) / 2
    H = hessian(-np.eye(2), np.array([0, 0, np.pi, np.pi]), w)
    modes = np.array([[1, -1, 0, 0], [0, 0, 1, -1]])
    return float(max(mode @ H @ mode / (mode**2 @ w) for mode in modes))


def _bound(count: int) -> xr.Dataset:
    """E / cosh c of random measures, for random D <= 0 of norm c."""
    random, ratios = np.random.default_rng(3), []
    for _ in range(count):
        values = -np.sort(random.uniform(0, 3, 3))
        axes = np.linalg.qr(random.normal(size=(3, 3)))[0]
        sides = random.choice([-1, 1], size=(8, 1))
        x = random.normal(size=(8, 3)) + sides * random.exponential(20) * axes[:, -1]
        x, w = x / np.linalg.norm(x, axis=1, keepdims=True), random.dirichlet(np.ones(8))
        ratios.append(energy(axes * values @ axes.T, x, w) / np.cosh(values[-1]))
    return xr.Dataset({"ratio": ("sample", ratios)})


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 4, size=(2.5, 2.9), width_ratios=(1, 1, 1, 1.15))
    titles = ("$D=-I$", r"$D=-\mathrm{diag}(1,3,4)$", r"$D=\mathrm{diag}(-1,0,0)$")
    for ax, name, title in zip(axes, CASES, titles):
        place = _pair(data[f"runs/{name}"].x.values)[1]
        ball(
            ax,
            np.concatenate([place, -place]),
            f"{title}\nthe clusters of {len(place)} runs",
            delta=1e-3,
        )
    with look(axes[3]) as theme:
        p, runs = (
            np.linspace(0, 1, 201),
            [data[f"runs/{name}"].to_dataset() for name in ("minus identity", "one axis")],
        )
        axes[3].plot(p, antipodal_energy(-1.0, p), color=theme.soft, linewidth=1, label="theory")
        share = np.concatenate([_pair(run.x.values)[0] for run in runs])
        axes[3].plot(
            share,
            np.concatenate([run.energy for run in runs]),
            "o",
            color=theme.palette[0],
            markersize=4,
            label="runs",
        )
        axes[3].axvspan(*data["stability"].end.values, color=theme.faint, alpha=0.45, linewidth=0)
        axes[3].text(0.5, 0.75, "stable", ha="center", color=theme.soft)
        axes[3].axhline(np.cosh(1), color=theme.ink, linewidth=0.6, linestyle=":")
        axes[3].text(0.01, np.cosh(1) + 0.02, r"$\cosh 1$", color=theme.ink, va="bottom")
        axes[3].set(
            xlabel="mass $p$ of a cluster", ylabel="energy $E$", xlim=(0, 1), ylim=(0.3, 1.7)
        )
        axes[3].legend(loc="lower center", ncols=2)
        axes[3].set_title(r"Pairs of masses $p$, $1-p$, $c=1$")
    return figure


def _pair(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mass, place) of the cluster of the first token, for each run."""
    first = x[:, :1]
    side = np.sign(np.sum(x * first, axis=-1))
    return (side > 0).mean(axis=1), first[:, 0]


def spread(x: np.ndarray) -> float:
    """Greatest 1 - |<x_i, x_1>| over tokens and runs: zero for opposite clusters."""
    return float((1 - np.abs(np.sum(x * x[:, :1], axis=-1))).max())


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    runs = {name: data[f"runs/{name}"].to_dataset() for name in CASES}
    return [*_run_claims(runs), *_mass_claims(data, runs), *_bound_claims(data, runs)]


def _run_claims(runs: dict[str, xr.Dataset]) -> list[Claim]:
    statements = [
        Claim(
            f"pairs-{name.split()[-1]}",
            f"$D = diag{_text(name)}$, $N = 100$: every run ends in two opposite clusters"
            f" (greatest $1 − |⟨x_i, x_1⟩|$; {ends.sizes['run']} runs)",
            "Figure 6",
            spread(ends.x.values),
            between(-1e-14, 1e-6),
        )
        for name, ends in runs.items()
    ]
    statements += [
        Claim(
            f"axis-{name.split()[-1]}",
            f"$D = diag{_text(name)}$: the pair lies on $±e_{axis + 1}$, the eigenvector of"
            " $λ_min$ (greatest $1 − |x·e|$)",
            "Figure 6; maximisers, negative case",
            float((1 - np.abs(runs[name].x.values[..., axis])).max()),
            between(-1e-14, 1e-6),
        )
        for name, axis in AXES.items()
    ]
    return statements


def _mass_claims(data: xr.DataTree, runs: dict[str, xr.Dataset]) -> list[Claim]:
    excess = data["masses"].order_parameter.values.astype(float)
    few = _pair(runs["minus identity"].x.values)[0]
    larger = N * (1 + excess) / 2
    low, high = 1 / (1 + np.e**2), np.e**2 / (1 + np.e**2)
    where = "Figure 6; maximisers, negative case"
    return [
        Claim(
            "masses",
            "$D = −I$, $N = 100$: the larger cluster has fewer tokens than $N e²/(1+e²) ="
            f" {N * high:.1f}$, the stable range (greatest number over {len(larger)} runs)",
            DERIVED,
            float(larger.max()),
            between(50, N * high),
            note=(
                f"in our {len(few)} runs drawn here one cluster has"
                f" {', '.join(map(str, np.round(N * few).astype(int)))}"
            ),
        ),
        Claim(
            "unequal",
            "$D = −I$, $N = 100$: exactly equal masses occur in a minority of runs (share"
            " of runs with 50 and 50)",
            where,
            float((excess < 0.005).mean()),
            between(0.02, 0.5),
            error=float((excess < 0.005).std() / np.sqrt(len(excess))),
        ),
        *(
            Claim(
                f"stable-{name}",
                "$D = −I$: a pair of masses $p$, $1 − p$ does not split, and is stable up"
                f" to rotation, for $1/(1+e²) < p < e²/(1+e²)$; the {name} end is"
                f" ${exact:.10f}$ (on the circle)",
                DERIVED,
                float(end),
                near(exact, 1e-9),
            )
            for name, exact, end in zip(
                ("lower", "upper"), (low, high), data["stability"].end.values
            )
        ),
    ]


def _bound_claims(data: xr.DataTree, runs: dict[str, xr.Dataset]) -> list[Claim]:
    shares = {name: _pair(ends.x.values)[0] for name, ends in runs.items()}
    off = max(
        float(np.abs(ends.energy / antipodal_energy(min(CASES[name]), shares[name]) - 1).max())
        for name, ends in runs.items()
    )
    ratio = np.concatenate([ends.energy / np.cosh(min(CASES[name])) for name, ends in runs.items()])
    equal = np.concatenate([share == 0.5 for share in shares.values()])
    bound = data["bound"].ratio.values
    where = "Maximisers, negative case"
    return [
        Claim(
            "energy",
            f"runs end with the energy $(p² + q²)e^{{−c}} + 2pq e^{{c}}$ of their masses"
            f" $p$, $q$, $c = |λ_min|$ (greatest relative difference; {len(ratio)} runs)",
            DERIVED,
            off,
            between(0, 1e-8),
        ),
        Claim(
            "half",
            "only equal masses give $cosh c$: the greatest $E/cosh c$ of runs with $p ≠ ½$",
            where,
            float(ratio[~equal].max()),
            between(0.99, 1 - 1e-5),
            note=(
                f"{int(equal.sum())} of {len(ratio)} runs have $p = ½$; for them $|E/cosh c"
                f" − 1| ≤ {np.abs(ratio[equal] - 1).max(initial=0):.0e}$"
            ),
        ),
        Claim(
            "bound",
            "no measure has $E > cosh c$ for $D ≼ 0$ of norm $c$: greatest $E/cosh c$ of"
            f" {len(bound)} random weighted measures and matrices, $d = 3$",
            where,
            float(bound.max()),
            between(0.9, 1),
        ),
    ]


def _text(name: str) -> str:
    return "(" + ", ".join(f"{entry:g}".replace("-", "−") for entry in CASES[name]) + ")"

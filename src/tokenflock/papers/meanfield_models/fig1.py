"""Maximisers for $D$ with a positive largest eigenvalue: one cluster in the top eigenspace.

As published: 30 single tokens on $S^2$, each alone, climb $E = e^{x·Dx}$ by 500 layers $x ←
normalize(x + h e^{x·Dx} D x)$ with $h = 0.1$, for $D = I$ and $D = diag(1, 3, 4)$. Stationary
points: the library's field (with and without the partition function) at eigenvectors, at random
points, and at two opposite masses $p$ and $1 − p$, against the field in closed form. Maximisers: 50
tokens climb through 1000 layers for $D = diag(0.5, 0.9, 1)$ and for $diag(1, 1, 0.8)$, whose top
eigenspace is a plane; and the energy of random weighted measures of 8 tokens, clustered about the
top eigenvector of random matrices, is compared with its bound.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import xarray as xr

from tokenflock.dynamics import Burger
from tokenflock.observables import FlowEnergy
from tokenflock.papers.meanfield_models._anisotropic import energy, speed
from tokenflock.papers.meanfield_models._balls import VIEW, ball
from tokenflock.plots import look, panels, sphere
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.verbs.simulate import simulate

SOURCE = "Figure 1"
CAPTION = (
    "See single tokens stay where they are for $D = I$, and go along the sphere to $±e_3$, the"
    " top eigenvectors, for $D = diag(1, 3, 4)$."
)
DERIVED = "derived; cf. stationary points of two clusters"
RUNS, END = 30, 50.0
TIMES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, END)
ALONE = {"identity": np.eye(3), "distinct": np.diag([1.0, 3.0, 4.0])}
MANY = {"simple": np.diag([0.5, 0.9, 1.0]), "double": np.diag([1.0, 1.0, 0.8])}
SADDLE = np.diag([1.0, -1.0, 0.0])  # z.Dz = 0 on its diagonal


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {f"alone/{name}": _alone(D) for name, D in ALONE.items()}
    parts |= {"rest": _rest(), "bound": _bound(scale.pick(quick=100, paper=5000))}
    parts |= {f"many/{name}": _many(D, scale.pick(quick=6, paper=30)) for name, D in MANY.items()}
    setting = (
        "$d = 3$, $h = 0.1$; 30 runs of $N = 1$, $D = I$, $diag(1, 3, 4)$; runs of $N = 50$, $D"
        " = diag(0.5, 0.9, 1)$, $diag(1, 1, 0.8)$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _alone(D: np.ndarray) -> xr.Dataset:
    """Runs of one token, put side by side."""
    options = {"t": END, "times": TIMES, "solver": Layer(h=0.1)}
    runs = [simulate(Burger(D=D), Uniform(n=1, d=3), seed=seed, **options) for seed in range(RUNS)]
    x = np.concatenate([run.x.values for run in runs], axis=1)
    return xr.Dataset(
        {"x": (("time", "particle", "coord"), x)}, coords={"time": runs[0].time.values}
    )


def _rest() -> xr.Dataset:
    """Greatest speeds where a measure is stationary.

    Elsewhere the greatest distance from the field in closed form.
    """
    random, D, p = np.random.default_rng(1), ALONE["distinct"], 0.3
    names = ("point", "pair", "balanced", "unbalanced")
    columns = {"speed": [], "off": [], "lopsided": []}
    diagonal = np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    for normalised in (False, True):
        at_rest = [_pair_speed(D, z, p, normalised) for z in np.eye(3)]
        points = [speed(D, z[None], np.ones(1), normalised) for z in np.eye(3)]
        balanced, unbalanced = (
            _pair_speed(SADDLE, diagonal, mass, normalised) for mass in (0.5, p)
        )
        columns["speed"].append(
            [np.max(speeds) for speeds in (points, at_rest, balanced, unbalanced)]
        )
        columns["lopsided"].append(_pair_speed(SADDLE, _lopsided(p), p, normalised))
        z = random.normal(size=(20, 3))
        columns["off"].append(
            max(_off(D, direction / np.linalg.norm(direction), p, normalised) for direction in z)
        )
    return xr.Dataset(
        {
            "speed": (("law", "measure"), columns["speed"]),
            "off": ("law", columns["off"]),
            "lopsided": (("law", "side"), columns["lopsided"]),
        },
        coords={"law": ["unnormalised", "normalised"], "measure": list(names), "side": ["z", "-z"]},
    )


def _lopsided(p: float) -> np.ndarray:
    """The z at which z.Dz = ln((1 - p) / p) / 2 for D = diag(1, -1, 0): masses p at z and 1 - p at
    -z move at -z only.
    """
    angle = np.arccos(np.log((1 - p) / p) / 2) / 2
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def _pair_speed(D: np.ndarray, z: np.ndarray, p: float, normalised: bool) -> np.ndarray:
    """Speeds at z and -z of p delta_z + (1-p) delta_{-z}."""
    return speed(D, np.stack([z, -z]), np.array([p, 1 - p]), normalised)


def _off(D: np.ndarray, z: np.ndarray, p: float, normalised: bool) -> float:
    """Greatest relative distance of the speeds of delta_z, and of masses p, 1 - p at z, -z, from
    |P_z D z| times a factor.
    """
    c, slope, q = z @ D @ z, np.linalg.norm(D @ z - (z @ D @ z) * z), 1 - p
    up, down = np.exp([c, -c])
    whole = (1, p * up + q * down, q * up + p * down) if normalised else (1, 1, 1)
    expected = (
        slope
        * np.array([1 if normalised else up, *np.abs([p * up - q * down, q * up - p * down])])
        / whole
    )
    speeds = np.append(speed(D, z[None], np.ones(1), normalised), _pair_speed(D, z, p, normalised))
    return float(np.abs(speeds / expected - 1).max())


def _many(D: np.ndarray, count: int) -> xr.Dataset:
    """Where 50 tokens end: their energies and how far they are from each other and from the top
    eigenspace.
    """
    options = {"t": 2 * END, "times": [2 * END], "solver": Layer(h=0.1), "observe": [FlowEnergy()]}
    runs = [
        simulate(Burger(D=D), Uniform(n=50, d=3), seed=seed, **options).isel(time=-1)
        for seed in range(count)
    ]
    x = np.stack([run.x.values for run in runs])
    low = np.abs(x[..., np.diag(D) < np.diag(D).max()]).max(axis=(1, 2))
    return xr.Dataset(
        {"energy": ("run", [float(run.flow_energy) for run in runs]), "outside": ("run", low)}
    )


def _bound(count: int) -> xr.Dataset:
    """E / e^{lambda_max} of random measures, for random D with lambda_max >= |lambda_min|."""
    random, ratios = np.random.default_rng(2), []
    for _ in range(count):
        values = np.sort(random.uniform(-1, 1, 3)) * random.uniform(0.2, 3)
        values[-1] = max(values[-1], -values[0])
        axes = np.linalg.qr(random.normal(size=(3, 3)))[0]
        x = random.normal(size=(8, 3)) + random.exponential(20) * axes[:, -1]
        x, w = x / np.linalg.norm(x, axis=1, keepdims=True), random.dirichlet(np.ones(8))
        ratios.append(energy(axes * values @ axes.T, x, w) / np.exp(values[-1]))
    return xr.Dataset({"ratio": ("sample", ratios)})


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.2, 3.4))
    still, moved = (data[f"alone/{name}"].to_dataset() for name in ALONE)
    below = "30 single tokens after 500 layers"
    ball(left, still.x.values[-1], f"$D=I$: every point is a maximiser\n{below}")
    sphere(moved, ax=right, tail=len(TIMES), **VIEW)
    right.set_title(r"$D=\mathrm{diag}(1,3,4)$: only $\pm e_3$" + f"\n{below}, and their paths")
    _bold(right)
    up = int((moved.x.values[-1, :, 2] > 0).sum())
    with look(right) as theme:
        for side, count in (("+", up), ("-", RUNS - up)):
            place = (0.3, float(f"{side}1.02"))
            right.text(*place, f"{count} at ${side}e_3$", color=theme.ink, va="center")
    return figure


def _bold(ax: Axes) -> None:
    """Make the paths as dark at their beginning as at their end: here they are what is shown."""
    paths = max(
        (cast(Any, lines) for lines in ax.collections if hasattr(lines, "get_segments")),
        key=lambda lines: lines.get_zorder(),
    )
    colours = np.array(paths.get_colors())
    colours[:, 3] = np.where(colours[:, 3] > 0, 0.75, 0)
    paths.set(color=colours, linewidth=0.9)


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_alone_claims(data.children["alone"]),
        *_rest_claims(data["rest"].to_dataset()),
        *_many_claims(data),
    ]


def _alone_claims(alone: xr.DataTree) -> list[Claim]:
    still, moved = alone["identity"].x.values, alone["distinct"].x.values
    return [
        Claim(
            "identity",
            "$D = I$, $N = 1$, $d = 3$: a token stays where it is (largest change of a"
            " coordinate between the first frame and the last, after 500 layers of $h ="
            " 0.1$; 30 runs)",
            "Figure 1; stationary points",
            float(np.abs(still[-1] - still[0]).max()),
            between(0, 1e-13),
        ),
        Claim(
            "distinct",
            "$D = diag(1, 3, 4)$, $N = 1$: every token ends in $±e_3$, the top eigenvector"
            " (greatest $1 − |x_3|$; 30 runs)",
            "Figure 1; maximisers, positive case",
            float((1 - np.abs(moved[-1, :, 2])).max()),
            between(0, 1e-13),
            note=(
                "the largest $1 − |x_3|$ at the start is"
                f" ${float((1 - np.abs(moved[0, :, 2])).max()):.2f}$"
            ),
        ),
        Claim(
            "side",
            "$D = diag(1, 3, 4)$, $N = 1$: a token ends at the pole of its own hemisphere"
            " (runs that changed sides)",
            "Figure 1",
            float(np.sum(~(moved[0, :, 2] * moved[-1, :, 2] >= 0))),  # one without a number too
            between(0, 0),
        ),
    ]


def _rest_claims(rest: xr.Dataset) -> list[Claim]:
    where = "Stationary points, one and two points"
    still = rest.speed.sel(measure=["point", "pair", "balanced"])
    at, opposite = rest.lopsided.values.T
    c = np.log(7 / 3) / 2
    moving = np.sqrt(1 - c**2) * (0.7 * np.exp(c) - 0.3 * np.exp(-c))
    return [
        Claim(
            "stationary",
            "$δ_z$ and $pδ_z + (1−p)δ_{−z}$ are at rest if $z$ is an eigenvector of $D$,"
            " and $½δ_z + ½δ_{−z}$ also if $z·Dz = 0$ (greatest speed; $D = diag(1, 3, 4)$"
            " with $p = 0.3$, $D = diag(1, −1, 0)$ with $z = (e_1 + e_2)/√2$)",
            where,
            float(still.max()),
            between(0, 1e-14),
            note="both with and without the partition function",
        ),
        Claim(
            "unbalanced",
            "at $z·Dz = 0$ unequal masses are not at rest: for $D = diag(1, −1, 0)$, $z ="
            " (e_1 + e_2)/√2$, $p = 0.3$ the speed is $|2p − 1|$",
            where,
            float(rest.speed.sel(measure="unbalanced").mean()),
            between(0.4 - 1e-12, 0.4 + 1e-12),
        ),
        Claim(
            "only",
            "at any $z$ the speed of $δ_z$ is $|P_z Dz| e^{c}$, $c = z·Dz$; that of $pδ_z +"
            " (1−p)δ_{−z}$ is $|P_z Dz| |p e^{c} − (1−p) e^{−c}|$ at $z$, and with $p$ and"
            " $1−p$ exchanged at $−z$: these two vanish together only if $z$ is an"
            " eigenvector, or $c = 0$ and $p = ½$ (greatest relative difference of the law"
            " from these formulas; 20 random $z$, $D = diag(1, 3, 4)$, $p = 0.3$)",
            where,
            float(rest.off.max()),
            between(0, 1e-10),
            note="with the partition function: the same over the partition function",
        ),
        Claim(
            "lopsided",
            "one of the two can rest alone: for $D = diag(1, −1, 0)$, $p = 0.3$ and $z$"
            " with $z·Dz = ½ ln((1−p)/p)$ the speed at $z$ vanishes though $z$ is no"
            " eigenvector",
            DERIVED,
            float(at.max()),
            between(0, 1e-14),
            note="both with and without the partition function",
        ),
        Claim(
            "lopsided-other",
            f"there the speed at $−z$ is $|P_z Dz| ((1−p) e^{{c}} − p e^{{−c}})$, $c = ½"
            f" ln((1−p)/p)$, without the partition function: ${moving:.6f}$",
            DERIVED,
            float(opposite[0]),
            near(moving, 1e-12),
        ),
    ]


def _many_claims(data: xr.DataTree) -> list[Claim]:
    simple, double, ratio = data["many/simple"], data["many/double"], data["bound"].ratio.values
    rise = np.abs(np.concatenate([simple.energy.values, double.energy.values]) / np.e - 1).max()
    return [
        Claim(
            "most",
            f"$N = 50$ tokens climb to $E = e^{{λ_max}}$ for $D = diag(0.5, 0.9, 1)$ and"
            f" $diag(1, 1, 0.8)$ (greatest relative difference, {2 * simple.energy.size}"
            " runs)",
            "Maximisers, positive case",
            float(rise),
            between(0, 1e-12),
            note=(
                "$λ_2/λ_1 = 0.9 > tanh 1$ or a double eigenvalue: there is no trap of two"
                " clusters here (see Figure 2)"
            ),
        ),
        Claim(
            "eigenspace",
            "there all tokens lie in the top eigenspace (greatest coordinate outside it)",
            "Maximisers, positive case",
            float(max(simple.outside.max(), double.outside.max())),
            between(0, 1e-6),
        ),
        Claim(
            "bound",
            f"no measure has $E > e^{{λ_max}}$ where $λ_max ≥ |λ_min|$: greatest"
            f" $E/e^{{λ_max}}$ of {len(ratio)} random weighted measures and matrices, $d ="
            " 3$",
            "Maximisers, positive case",
            float(ratio.max()),
            between(0.95, 1),
        ),
    ]

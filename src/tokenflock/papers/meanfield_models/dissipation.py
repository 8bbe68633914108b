"""Energy and dissipation of measures, in the metric that belongs to each law.

The continuity equation on the circle is solved from a mixture of two von Mises densities for SA and
USA ($β = 2$, attractive and repulsive) and for the flows of the energy $∫∫ e^(x·Dy)$ with $D =
diag(1, −0.5)$, with and without normalisation. The change of the energy is compared with the time
integral (Gauss nodes in time) of $∫ |X|^2 a dμ$, formed from density and velocity of every frame:
the weight $a$ is 1 for USA and $Z = ∫ e^(β ⟨x,y⟩) dμ$ for SA, that of the metric in which SA is a
gradient flow (its mobility is $1/Z$); twice that for the energy of $D$. Without the weight the
balance of SA fails. Mass and least density are watched. The Wasserstein distance between first and
last measure is compared with the length that the energy allows.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import xarray as xr

from tokenflock.dynamics import Burger, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics, GradientFlow
from tokenflock.meanfield import Mixture, VonMises, evolve, wasserstein
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between
from tokenflock.reproduction.scale import Scale

SOURCE = "Gradient flow, energy dissipation"
CAPTION = (
    "See the energy that a measure gains (lines) equal what it dissipates in the metric of "
    "its law (dots)."
)
BETA, T, POINTS = 2.0, 0.3, 256
D = np.diag([1.0, -0.5])
START = Mixture([VonMises(3.0, mean=0.5), VonMises(2.0, mean=3.0)], masses=np.array([2.0, 1.0]))
LAWS = {
    "SA": SelfAttention(BETA),
    "USA": Unnormalised(BETA),
    "SA, V = -I": SelfAttention(BETA, repulsive=True),
    "USA, V = -I": Unnormalised(BETA, repulsive=True),
    "SA, D": Burger(D=D, normalised=True),
    "USA, D": Burger(D=D),
}


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    s, g = np.polynomial.legendre.leggauss(scale.pick(quick=16, paper=32))
    times = np.concatenate([T * (s + 1) / 2, [T]])
    runs = {name: evolve(law, START, times=times, t=T, points=POINTS) for name, law in LAWS.items()}
    stack = {
        name: np.stack([run[name].values for run in runs.values()])
        for name in ("energy", "mass", "smallest", "density")
    }
    weighted, plain = zip(*(_dissipation(LAWS[name], run) for name, run in runs.items()))
    return xr.Dataset(
        {
            **{name: (("law", "time"), stack[name]) for name in ("energy", "mass", "smallest")},
            "density": (("law", "time", "theta"), stack["density"]),
            "dissipated": (("law", "time"), np.array(weighted)),
            "unweighted": (("law", "time"), np.array(plain)),
            "quadrature": ("time", np.concatenate([[0.0], T * g / 2, [0.0]])),
            "W2": (
                "law",
                [wasserstein(run.isel(time=[0]), run.isel(time=[-1])) for run in runs.values()],
            ),
        },
        coords={
            "law": list(LAWS),
            "time": runs["SA"].time.values,
            "theta": runs["SA"].theta.values,
        },
        attrs={
            "setting": (
                f"circle, $β = {BETA:g}$ or $D = diag(1, −0.5)$, $t$ up to {T:g}, {POINTS} nodes"
            )
        },
    )


def _dissipation(law: Dynamics, run: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(int |X|^2 m dmu, int |X|^2 dmu) of every frame, with the sign of the energy's change."""
    x = np.stack([np.cos(run.theta), np.sin(run.theta)], axis=1)
    matrix = law.D if isinstance(law, Burger) else BETA * np.eye(2)
    mass = run.density.values * run.weight.values
    square = mass * run.velocity.values**2
    sign = (2 if isinstance(law, Burger) else 1) * (1 if cast(GradientFlow, law).ascends else -1)
    divided = isinstance(law, SelfAttention) or getattr(law, "normalised", False)
    Z = mass @ np.exp(x @ matrix @ x.T) if divided else 1.0
    return sign * (square * Z).sum(axis=1), sign * square.sum(axis=1)


def _balance(run: xr.Dataset, name: str) -> float:
    """(change of energy - integral) / change of energy."""
    change = float(run.energy[-1] - run.energy[0])
    return 1 - float((run[name] * run.quadrature).sum()) / change


def _gained(run: xr.Dataset) -> np.ndarray:
    """The integral of the dissipation up to each time, by the polynomial through Gauss nodes."""
    s = 2 * run.time.values / T - 1
    through = np.polynomial.Legendre.fit(
        s[1:-1], run.dissipated.values[1:-1], len(s) - 3, domain=[-1, 1]
    )
    return T / 2 * through.integ(lbnd=-1)(s)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.8, 2.8))
    for ax, names, title in zip(
        axes,
        (("SA", "USA", "SA, V = -I", "USA, V = -I"), ("SA, D", "USA, D")),
        (rf"$\beta={BETA:g}$", "$D$ = diag(1, $-$0.5)"),
    ):
        with look(ax) as theme:
            ax.axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
            for colour, name in zip(theme.palette, names):
                curves = data.sel(law=name)
                ax.plot(
                    data.time,
                    curves.energy - curves.energy[0],
                    color=colour,
                    label=name.replace("-", "−"),
                )
                ax.plot(data.time[::2], _gained(curves)[::2], "o", color=colour, markersize=3)
            ax.set(xlim=(0, T), xlabel=r"time $t$", ylabel=r"$E(\mu_t)-E(\mu_0)$")
            ax.legend(loc="best", fontsize="small")
            ax.set_title(title + ": energy (lines), dissipated (dots)")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    balances = [_balance_claim(data.sel(law=name), name) for name in LAWS]
    without = {name: _balance(data.sel(law=name), "unweighted") for name in ("SA", "SA, D")}
    step = np.sign(data.energy[:, -1] - data.energy[:, 0]) * data.energy.diff("time")
    return [
        *balances,
        Claim(
            "weight",
            "without the weight $Z$ of the metric the balance of SA fails: smallest"
            " relative error ($β = 2$; $D = diag(1, −0.5)$)",
            "Gradient flow, weighted metric $W_{m,2}$",
            min(abs(value) for value in without.values()),
            at_least(0.01),
            note=", ".join(f"{name}: ${value:.3f}$" for name, value in without.items()).replace(
                "-", "−"
            ),
        ),
        Claim(
            "monotone",
            "the energy is monotone in time for all six laws: least step between frames, in the"
            " law's direction",
            SOURCE,
            float(step.min()),
            at_least(0),
        ),
        Claim(
            "mass",
            "mass is kept (greatest difference from 1)",
            "Continuity equation",
            float(abs(data.mass - 1).max()),
            at_most(1e-13),
        ),
        Claim(
            "positive",
            "the density stays positive: least value",
            "Continuity equation",
            float(data.smallest.min()),
            at_least(1e-6),
        ),
        *_length_claims(data),
    ]


def _balance_claim(run: xr.Dataset, name: str) -> Claim:
    weight = "$∫|X|² Z dμ$" if name.startswith("SA") else "$∫|X|² dμ$"
    factor = "2" if name.endswith("D") else "−" if "-" in name else ""
    law, _, kind = name.partition(", ")
    names = {"SA": "self-attention (SA)", "USA": "unnormalised self-attention (USA)"}
    energies = (
        "$E = ∬e^{x·Dy}dμdμ$, $D = diag(1, −0.5)$"
        if kind == "D"
        else "$E = (1/(2β))∬e^{β⟨x,y⟩}dμdμ$, $β = 2$"
    )
    logits = "x·Dy" if kind == "D" else "β⟨x,y⟩"
    weights = f", $Z(x) = ∫e^{{{logits}}}dμ(y)$" if law == "SA" else ""
    repulsive = ", $V = −I$" if "-" in kind else ""
    return Claim(
        "balance-" + name.lower().replace(", v = -i", "-repulsive").replace(", d", "-matrix"),
        f"{names[law]}{repulsive}, {energies}: the energy changes by the time integral of"
        f" {factor}{weight}{weights} (two von Mises densities, $t ≤ {T:g}$; relative error)",
        SOURCE,
        abs(_balance(run, "dissipated")),
        at_most(1e-8),
        note=f"change of energy ${float(run.energy[-1] - run.energy[0]):.6f}$".replace("-", "−"),
    )


def _length_claims(data: xr.Dataset) -> list[Claim]:
    """W_2^2 <= T int int |X|^2 dmu dt.

    By the gain of energy for USA, and up to the least weight for SA.
    """
    plain, weighted = data.sel(law="USA, D"), data.sel(law="SA, D")
    norm = float(abs(np.linalg.eigvalsh(D)).max())
    action = float((weighted.unweighted * weighted.quadrature).sum()) / 2  # int int |X|^2 dmu dt
    half_gain, half_gain_weighted = (
        float(flow.energy[-1] - flow.energy[0]) / 2 for flow in (plain, weighted)
    )
    return [
        Claim(
            "length",
            "USA with $D = diag(1, −0.5)$: $W_2(μ_0, μ_T)²$ is at most $T$ times half the"
            f" gain of energy, and within 5 % of it for $T = {T}$ (ratio)",
            "Gradient flow, Wasserstein metric",
            float(plain.W2) ** 2 / (T * half_gain),
            between(0.95, 1),
            note=(
                f"$W_2 = {float(plain.W2):.4f}$ by optimal transport; 1 would be a geodesic"
                " of constant speed"
            ),
        ),
        Claim(
            "length-sa",
            "SA with $D = diag(1, −0.5)$: $W_2(μ_0, μ_T)²$ is at most $T ∫∫|X|² dμ dt$, and"
            f" within 5 % of it for $T = {T}$ (ratio)",
            "Gradient flow, Wasserstein metric",
            float(weighted.W2) ** 2 / (T * action),
            between(0.95, 1),
        ),
        Claim(
            "length-weighted",
            "SA with $D = diag(1, −0.5)$: $W_2(μ_0, μ_T)² ≤ e^{‖D‖} T (E(μ_T) − E(μ_0))/2$,"
            " as the weight $Z$ of the metric is at least $e^{−‖D‖}$ (ratio of the two"
            " sides)",
            "Gradient flow, weighted metric $W_{m,2}$",
            float(weighted.W2) ** 2 / (T * half_gain_weighted * np.exp(norm)),
            between(0, 1),
        ),
    ]

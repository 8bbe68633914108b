"""Noise that all tokens share brings them together, unless the activation is too steep.

(1) Additive common noise $√(2/κ) dB$ without attention (`CommonNoise`): two tokens next to each
other approach at the rate $2(d−1)/κ$ in $log(1−R)$, while the mean of $1−R$ falls at $2(d−3)/κ$
only (derived here). (2) A feed-forward part $W σ(A x)$ that is fresh in every layer, alone: with
$q(R) = E σ(z) σ(z')$ for Gaussian $z$, $z'$ of correlation $R$, the exponent is $(−(d−1) q + (d−3)
q')/d$ at $R = 1$ (derived here), so tokens synchronise iff $q'(1)/q(1) < (d−1)/(d−3)$: always for
relu and linear layers, for tanh only up to $d = 14$. Layers of $h = 0.02$ and 0.05, $t = 4$, pairs
at distance $1e-3$. arXiv 2604.26898 proves synchronisation by noise and characterises activations
(abstract).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.observables import ConsensusDistance, MinimumCosine
from tokenflock.papers.stochastic_depth._fresh import FreshFeedForward
from tokenflock.parts import CommonNoise, NoHeads
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import EulerMaruyama, Layer
from tokenflock.starts import Uniform

SOURCE = "arXiv 2604.26898: synchronisation by noise"
CAPTION = (
    "See noise that all tokens share bring a pair of cosine $R$ together, $1 − R$ falling (left;"
    " dotted: the theory's late rates), and fresh feed-forward layers too, unless the activation is"
    " too steep (right, above zero)."
)
DERIVED = "derived here; cf. abstract of arXiv 2604.26898"
KAPPA, T, NEAR = 10.0, 4.0, 1e-3
FEEDS = (("identity", 8), ("relu", 8), ("tanh", 8), ("tanh", 24))
STEP, EULER = 0.05, 0.02


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=2000, paper=20_000)
    additive = [_rates(_common(), d, repeats, EulerMaruyama(h=EULER)) for d in (3, 8)]
    feeds = [_rates(_feeding(name), d, repeats, Layer(h=STEP)) for name, d in FEEDS]
    parts = {
        "additive": _table(additive, {"d": [3, 8]}),
        "feeding": _table(feeds, {"case": [f"{name}-{d}" for name, d in FEEDS]}),
        "mean": _mean(repeats),
    }
    setting = (
        f"pairs at distance {NEAR}, $t = {T:g}$; common noise $κ = {KAPPA:g}$, $d = 3$ and 8;"
        f" fresh feed-forward parts, $d = 8$ and 24; {repeats} pairs; uniform pairs for the mean"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _common() -> Block:
    return Block(heads=NoHeads(), noise=CommonNoise(kappa=KAPPA))


def _feeding(name: str) -> Block:
    return Block(noise=FreshFeedForward(Activation(name), hidden=1))


def _rates(law: Dynamics, d: int, repeats: int, solver) -> Array:
    """Rates of log(1 - R), one for every pair."""
    x = np.zeros((2, d))
    x[:, 0], x[1, 1] = 1, NEAR
    run = flock.ensemble(
        law,
        x,
        repeats=repeats,
        t=T,
        frames=2,
        solver=solver,
        observe=[ConsensusDistance()],
        keep=True,
        dtype="float64",
    )
    far = run.consensus_distance.values
    return 2 * np.log(far[:, 1] / far[:, 0]) / T


def _table(rates: list[Array], coords: dict[str, list]) -> xr.Dataset:
    (name,) = coords
    mean, error = zip(*((r.mean(), r.std() / np.sqrt(len(r))) for r in rates))
    return xr.Dataset({"rate": (name, list(mean)), "error": (name, list(error))}, coords)


def _mean(repeats: int) -> xr.Dataset:
    """1 - R of uniform pairs under common noise, d = 8: mean and typical (geometric) value."""
    run = flock.ensemble(
        _common(),
        Uniform(n=2, d=8),
        repeats=repeats,
        t=T,
        frames=9,
        solver=EulerMaruyama(h=EULER),
        observe=[MinimumCosine()],
        keep=True,
        dtype="float64",
    )
    gap = 1 - run.minimum_cosine.values
    return xr.Dataset(
        {
            "mean": ("time", gap.mean(0)),
            "error": ("time", gap.std(0) / np.sqrt(repeats)),
            "typical": ("time", np.exp(np.log(gap).mean(0))),
        },
        {"time": run.time.values},
    )


def activation_kernel(name: str, nodes: int = 200) -> tuple[float, float]:
    """(q(1), q'(1)) = (E sigma(z)^2, E sigma'(z)^2) for a standard Gaussian z."""
    if name == "identity":
        return 1.0, 1.0
    if name == "relu":
        return 0.5, 0.5
    z, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / weight.sum()
    return float(weight @ np.tanh(z) ** 2), float(weight @ np.cosh(z) ** -4.0)


def feeding_exponent(name: str, d: int) -> float:
    """Rate of log(1 - R) at R = 1 under a fresh feed-forward part."""
    q, slope = activation_kernel(name)
    return (-(d - 1) * q + (d - 3) * slope) / d


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    part, feeding = data["mean"].to_dataset(), data["feeding"].to_dataset()
    figure, axes = panels(1, 2, size=(3.6, 2.8))
    d = np.arange(2, 41)
    with look(figure) as theme:
        axes[0].semilogy(
            part.time,
            part["mean"],
            "o-",
            color=theme.palette[0],
            markersize=3.5,
            label="mean of $1-R$",
        )
        axes[0].semilogy(
            part.time,
            part.typical,
            "s-",
            color=theme.palette[2],
            markersize=3.5,
            label="typical (geometric mean)",
        )
        for rate, colour in ((2 * 5 / KAPPA, theme.palette[0]), (2 * 7 / KAPPA, theme.palette[2])):
            axes[0].semilogy(part.time, np.exp(-rate * part.time), ":", color=colour)
        axes[0].set(xlabel="$t$", ylabel="$1-R$")
        axes[0].set_title(rf"Common noise alone, $d=8$, $\kappa={KAPPA:g}$")
        axes[0].legend(loc="lower left")
        for colour, name in zip(theme.palette[1:], ("identity", "relu", "tanh")):
            rates = [feeding_exponent(name, int(each)) for each in d]
            axes[1].plot(d, rates, color=colour, label="linear" if name == "identity" else name)
            for (case, at), rate, error in zip(FEEDS, feeding.rate.values, feeding.error.values):
                if case == name:
                    axes[1].errorbar(at, rate, 2 * error, fmt="o", color=colour, markersize=4)
        axes[1].axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        axes[1].set(xlabel="$d$", ylabel="exponent of $1-R$", ylim=(-0.65, 0.12))
        axes[1].set_title("Fresh feed-forward layers (dots: measured)")
        axes[1].legend(loc="lower right")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_additive(data["additive"].to_dataset()),
        *_feeds(data["feeding"].to_dataset()),
        *_means(data["mean"].to_dataset()),
    ]


def _additive(part: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"common-{d}",
            f"common noise $√(2/κ) dB$ without attention, $d = {d}$, $κ = {KAPPA:g}$: $log(1"
            " − R)$ of two near tokens falls at $2(d−1)/κ$",
            DERIVED,
            float(part.rate.sel(d=d)),
            monte_carlo(
                -2 * (int(d) - 1) / KAPPA,
                float(part.error.sel(d=d)),
                slack=2 * (int(d) - 1) / KAPPA * 2 * EULER * int(d) / KAPPA,
            ),
            error=float(part.error.sel(d=d)),
            note=f"slack: the share $2hd/κ$ by which a step of $h = {EULER}$ makes $|x|²$ longer",
        )
        for d in part.d.values
    ]


def _feeds(part: xr.Dataset) -> list[Claim]:
    statements = []
    for name, d in FEEDS:
        here = part.sel(case=f"{name}-{d}")
        q, slope = activation_kernel(name)
        statements.append(
            Claim(
                f"feeding-{name}-{d}",
                f"a fresh feed-forward part $W σ(A x)$ in every layer, $σ = {name}$, $d ="
                f" {d}$: $log(1 − R)$ moves at $(−(d−1) q + (d−3) q′)/d$",
                DERIVED,
                float(here.rate),
                monte_carlo(feeding_exponent(name, d), float(here.error), slack=STEP * q**2),
                error=float(here.error),
                note=(
                    f"$q′/q = {slope / q:.4f}$, synchronises iff below $(d−1)/(d−3) ="
                    f" {(d - 1) / (d - 3):.4f}$; slack $h q²$"
                ),
            )
        )
    return statements


def _means(part: xr.Dataset) -> list[Claim]:
    """E(1-R) <= E(1-R)(0) e^{-2(d-3)t/kappa}, and typical pairs are closer than the mean says."""
    at = part.sel(time=T)
    bound = float(part["mean"].isel(time=0)) * np.exp(-2 * 5 * T / KAPPA)
    error = float(at.error)
    # of the slope of the mean between both times, as a share of it
    both = (part.error / part["mean"]).sel(time=[T / 2, T])
    off = float(np.hypot(*both) / (T / 2) / max(-_slope(part["mean"]), 1e-9))
    return [
        Claim(
            "dissipation",
            f"common noise alone, uniform pairs, $d = 8$, $κ = {KAPPA:g}$: $E(1 − R)$ at $t"
            f" = {T:g}$ is at most $e^(−2(d−3)t/κ)$ times its start (dissipation on average)",
            DERIVED,
            float(at["mean"]),
            (0.0, bound + 4 * error),
            error=error,
            note=f"the bound is ${bound:.4f}$; $dE(1−R)/dt = −(2/κ)[(d−3)E(1−R) + E(1−R)²]$",
        ),
        Claim(
            "typical",
            "typical pairs are closer than the mean: rate of $E log(1 − R)$ between $t = 2$"
            " and 4 over that of $log E(1 − R)$",
            DERIVED,
            _slope(part.typical) / min(_slope(part["mean"]), -1e-9),
            at_least(1 + 4 * off),
            error=off,
            note="at late times $(d−1)/(d−3) = 1.4$ for $d = 8$",
        ),
    ]


def _slope(values: xr.DataArray) -> float:
    return float(np.log(values.sel(time=T) / values.sel(time=T / 2))) / (T / 2)

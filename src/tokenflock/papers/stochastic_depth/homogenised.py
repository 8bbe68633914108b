"""The mean overlap follows the logistic curve, and finite $d$ bends it by corrections of order
$1/d$.

At $β = 0$ all tokens hear their mean. With fresh values of variance $1/d$ the mean overlap $s =
|mean x|^2$ obeys $ds = s(1−s) dt$ as $d → ∞$: $s = s_0/(s_0 + (1−s_0) e^(−t))$. For tokens of one
mutual cosine $γ$, Ito's formula gives $d log(s/(1−s)) = (1 − (4 + γ − 4s)/d) dt + (2/√d) dB$: a
drift below 1 and a variance $4t/d$ (derived here). A layer of step $h$ multiplies $s/(1−s)$ by $1 +
h$, not by $e^h$ ($d → ∞$, derived here), so that $t$ counts $(1/h) log(1+h)$ times, and divides the
noise by $1 + h$, so that the variance is $4t/(d (1+h)^2)$. $n = 16$ orthogonal tokens in $d = 16$
and 64, layers of $h = 0.1$ up to $t = 4$. With fresh $Q$, $K$ too the overlap of a simplex drifts
at $(1 − 2/d + γ^2/d) (γ + (1−γ) g) − (1 − 1/d) γ (γ + (1−γ) f)$, $f = E Σ_j A_(1j)^2$, $g = E Σ_j
A_(1j) A_(2j)$, measured in one layer. A random $d × d$ matrix changes cosines by $(R^3 − R)/(2d)$
in the mean. Model: arXiv 2604.01978 (abstract).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import gammaln, hyp2f1

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import MeanCosine
from tokenflock.papers.stochastic_depth._fresh import FreshHead
from tokenflock.parts import RandomHeads, ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Equiangular, Orthogonal

SOURCE = "arXiv 2604.01978: the homogenised limit"
CAPTION = (
    "See the mean overlap $s$ of tokens (dots) approach the logistic curve as $d$ grows (left), and"
    " the variance of $log(s/(1 − s))$ over systems (dots) grow along the line of theory (right)."
)
DERIVED = "model of arXiv 2604.01978; derived here"
N, H, T, ONE = 16, 0.1, 4.0, 0.02
DIMENSIONS = (16, 64)
SHARP = (0.3, 2.0, 8.0)
GAMMAS = (0.0, 0.5)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=1024, paper=8192)
    setting = (
        f"$n = {N}$; $β = 0$: $d = 16$ and 64, $h = {H}$, $t = {T:g}$, {repeats} systems; fresh"
        f" $Q$, $K$, $V$: $d = 64$, $β = 0.3$, 2, 8, one layer of $h = {ONE}$"
    )
    parts = {
        "logistic": _logistic(repeats),
        "simplex": _simplex(scale.pick(quick=1600, paper=8000)),
        "matrices": _matrices(scale.pick(quick=40_000, paper=100_000)),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _logistic(repeats: int) -> xr.Dataset:
    """The mean overlap s, diagonal included, of every system (d, repeat, time)."""
    rows = []
    for d in DIMENSIONS:
        run = flock.ensemble(
            Block(beta=0.0, noise=ValueNoise(alone=True)),
            Orthogonal(n=N, d=d),
            repeats=repeats,
            t=T,
            frames=9,
            solver=Layer(h=H),
            observe=[MeanCosine()],
            keep=True,
        )
        rows.append(1 / N + (1 - 1 / N) * run.mean_cosine.values)
    s = np.stack(rows)
    logit = np.log(s / (1 - s))
    return xr.Dataset(
        {
            "mean": (("d", "time"), s.mean(1)),
            "error": (("d", "time"), s.std(1) / np.sqrt(repeats)),
            "logit": (("d", "time"), logit.mean(1)),
            "logit_variance": (("d", "time"), logit.var(1)),
        },
        coords={"d": list(DIMENSIONS), "time": run.time.values},
        attrs={"repeats": repeats},
    )


def _simplex(repeats: int) -> xr.Dataset:
    """Drift of the overlap in one layer with fresh Q, K, V (gamma, beta), and f, g."""
    rows = []
    for gamma in GAMMAS:
        run = flock.ensemble(
            Block(noise=FreshHead()),
            Equiangular(n=N, d=64, rho=gamma),
            over={"dynamics.noise.sharpness": list(SHARP)},
            repeats=repeats,
            t=ONE,
            frames=2,
            solver=Layer(h=ONE),
            observe=[MeanCosine()],
            keep=True,
        )
        change = np.diff(run.mean_cosine.values, axis=-1)[..., 0] / ONE
        rows.append((change.mean(-1), change.std(-1) / np.sqrt(repeats)))
    drift, error = np.array(rows).transpose(1, 0, 2)
    f, g = np.array([[_heard(b, gamma) for b in SHARP] for gamma in GAMMAS]).transpose(2, 0, 1)
    dims = ("gamma", "beta")
    return xr.Dataset(
        {"drift": (dims, drift), "error": (dims, error), "f": (dims, f), "g": (dims, g)},
        coords={"gamma": list(GAMMAS), "beta": list(SHARP)},
    )


def _heard(beta: float, gamma: float, samples: int = 4000) -> tuple[float, float]:
    """(f, g) for Gaussian logits of covariance beta^2 gamma_ik gamma_jl: d -> infinity."""
    C = np.linalg.cholesky((1 - gamma) * np.eye(N) + gamma)
    S = beta * C @ np.random.default_rng(0).normal(size=(samples, N, N)) @ C.T
    A = np.exp(S - S.max(-1, keepdims=True))
    A /= A.sum(-1, keepdims=True)
    B = (A @ A.transpose(0, 2, 1)).mean(0)
    return float(np.trace(B) / N), float((B.sum() - np.trace(B)) / (N * (N - 1)))


def _matrices(samples: int) -> xr.Dataset:
    """The mean cosine of Ax and Ay for x, y at a cosine R = 0.5, A a fresh matrix of d rows."""
    rows = []
    for d in (4, 16):
        x = np.zeros((2, d))
        x[:, 0], x[1, 1] = (1, 0.5), np.sqrt(0.75)
        y = x @ _fresh(d, samples).transpose(0, 2, 1)
        y /= np.linalg.norm(y, axis=-1, keepdims=True)
        c = (y[:, 0] * y[:, 1]).sum(-1)
        rows.append((c.mean(), c.std() / np.sqrt(samples)))
    mean, error = zip(*rows)
    return xr.Dataset({"mean": ("d", list(mean)), "error": ("d", list(error))}, {"d": [4, 16]})


def _fresh(d: int, samples: int) -> Any:
    """The value matrices of so many layers, (samples, d, d)."""
    heads = RandomHeads(1, letters="V", period=1.0)
    V = jax.vmap(lambda t: heads.matrices(t, d).V)(jnp.arange(samples) + 0.5)
    return np.asarray(V, float)[:, 0]


def logistic(t: Any, s0: float) -> Any:
    """s0 / (s0 + (1 - s0) e^-t)."""
    return s0 / (s0 + (1 - s0) * np.exp(-t))


def expected_logit(t: Any, d: int, steps: int = 400) -> Any:
    """Mean of log(s/(1-s)) after layers of step H to order 1/d: along the logistic curve the rate
    is (1/h) log(1+h) - (4+gamma-4s)/d.
    """
    fine = np.linspace(0, float(np.max(t)), steps + 1)
    s = logistic(fine, 1 / N)
    gamma = (N * s - 1) / (N - 1)
    rate = np.log1p(H) / H - (4 + gamma - 4 * s) / d
    sums = np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(fine))])
    return np.interp(t, fine, sums) - np.log(N - 1)


def simplex_drift(gamma: float, f: float, g: float, d: float) -> float:
    """Drift of the overlap of a simplex."""
    together, alone = gamma + (1 - gamma) * g, gamma + (1 - gamma) * f
    return (1 - 2 / d + gamma**2 / d) * together - (1 - 1 / d) * gamma * alone


def projected_cosine(R: float, d: int) -> float:
    """Mean cosine of two correlated Gaussian vectors in R^d, exactly; R + (R^3 - R)/(2d) + ..."""
    ratio = np.exp(2 * (gammaln((d + 1) / 2) - gammaln(d / 2)))
    return float(2 / d * ratio * R * hyp2f1(0.5, 0.5, d / 2 + 1, R**2))


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    part = data["logistic"].to_dataset()
    figure, axes = panels(1, 2, size=(3.6, 2.8))
    t = np.linspace(0, T, 200)
    with look(figure) as theme:
        axes[0].plot(t, logistic(t, 1 / N), color=theme.ink, label=r"$d\to\infty$, logistic")
        for colour, d in zip(theme.palette, part.d.values):
            here = part.sel(d=d)
            axes[0].errorbar(
                part.time,
                here["mean"],
                2 * here.error,
                fmt="o",
                color=colour,
                markersize=3.5,
                label=f"layers, $d={d}$",
            )
            line = 4 * t / (d * (1 + H) ** 2)
            axes[1].plot(t, line, color=colour, label=f"$4t/(d(1+h)^2)$, $d={d}$")
            axes[1].plot(part.time, here.logit_variance, "o", color=colour, markersize=3.5)
        axes[0].set(xlabel="$t$", ylabel="mean overlap $s$", ylim=(0, 1))
        axes[0].set_title(rf"$n={N}$ orthogonal tokens, $\beta=0$")
        axes[0].legend(loc="upper left")
        axes[1].set(xlabel="$t$", ylabel=r"variance of $\log(s/(1-s))$", ylim=(0, None))
        axes[1].set_title("Common noise spreads systems")
        axes[1].legend(loc="upper left")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    part = data["logistic"].to_dataset()
    logits = [claim for d in DIMENSIONS for claim in _logits(part, d)]
    return [
        *logits,
        *_drifts(data["simplex"].to_dataset()),
        *_cosines(data["matrices"].to_dataset()),
    ]


def _logits(part: xr.Dataset, d: int) -> list[Claim]:
    here, count = part.sel(d=d, time=2.0), part.attrs["repeats"]
    spread = 4 * 2.0 / (d * (1 + H) ** 2)
    error = np.sqrt(spread / count)
    return [
        Claim(
            f"logit-{d}",
            f"$n = {N}$ orthogonal tokens, $β = 0$, $d = {d}$, fresh values: the mean of"
            " $log(s/(1−s))$ at $t = 2$ is $−log 15 + ∫(log(1+h)/h − (4+γ−4s)/d) dt$"
            " to order $1/d$ ($h = 0.1$)",
            DERIVED,
            float(here.logit),
            monte_carlo(
                float(expected_logit(np.float64(2.0), d)), error, slack=8 / d**2 + 8 * H / d
            ),
            error=float(error),
            note=(
                f"the logistic curve of the limit says ${2 - np.log(N - 1):.4f}$; mean"
                f" overlap ${float(here['mean']):.4f} ± {float(here.error):.4f}$, limit"
                f" ${float(logistic(np.float64(2.0), 1 / N)):.4f}$; slack $8/d² + 8h/d$"
            ),
        ),
        Claim(
            f"spread-{d}",
            "there the variance of $log(s/(1−s))$ over systems is $4t/(d(1+h)²)$ ($t = 2$, $d ="
            f" {d}$, $h = {H}$): ratio",
            DERIVED,
            float(here.logit_variance) / spread,
            monte_carlo(1, np.sqrt(2 / count), slack=2 / d),
            error=float(np.sqrt(2 / count)),
            note="the noise is common to all tokens, so it does not average out with $n$; slack"
            " $2/d$",
        ),
    ]


def _drifts(part: xr.Dataset) -> list[Claim]:
    statements = []
    for gamma in GAMMAS:
        for beta in SHARP:
            here = part.sel(gamma=gamma, beta=beta)
            expected = simplex_drift(gamma, float(here.f), float(here.g), 64)
            error = float(here.error)
            statements.append(
                Claim(
                    f"drift-{gamma:g}-{beta:g}",
                    f"$n = {N}$ tokens of mutual cosine ${gamma:g}$, fresh $Q$, $K$, $V$, $β"
                    f" = {beta:g}$, $d = 64$: the mean overlap drifts as the simplex"
                    " equation says",
                    "arXiv 2604.01978 in the form of a secondary source; finite $d$ derived here",
                    float(here.drift),
                    monte_carlo(expected, error, slack=0.005),
                    error=error,
                    note=(
                        f"$f = {float(here.f):.4f}$, $g = {float(here.g):.4f}$ for Gaussian"
                        f" logits; slack 0.005 for logits at $d = 64$ and $h = {ONE}$"
                    ),
                )
            )
    return statements


def _cosines(part: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"projected-{d}",
            f"a fresh {d} × {d} matrix takes two tokens of cosine $1/2$ to a mean cosine of"
            f" $R + (R³ − R)/(2d) +$ …, exactly ${projected_cosine(0.5, int(d)):.5f}$",
            "arXiv 2604.01978 in the form of a secondary source; exact form: Gaussian correlation",
            float(part["mean"].sel(d=d)),
            monte_carlo(projected_cosine(0.5, int(d)), float(part.error.sel(d=d))),
            error=float(part.error.sel(d=d)),
            note=f"to first order ${0.5 - 0.375 / (2 * d):.5f}$",
        )
        for d in part.d.values
    ]

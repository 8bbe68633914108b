"""Opposite places begin to attract two tokens where the line of exponents crosses zero.

Two tokens hear softmax attention through a value matrix that is fresh in every layer and common to
both, $x ← normalize(x + √h W u)$, as Transformer layers of $h = 0.05$ (`ValueNoise`). (1) One layer
of $h = 0.02$ from a given cosine $R$: mean and variance of its change against the drift $b(R)$ and
the variance $a(R)$ of the limiting diffusion. (2) Pairs that begin at a distance of $1e-3$ from
each other, or from opposite places, for $t = 4$: the mean of $log(1 ∓ R)$ moves at the exponents
$−(d−1)/d$ and $((d−1)/cosh^2(β) − 2)/d$. The model is that of arXiv 2601.21942; $b$, $a$ and both
exponents are derived here.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import MinimumCosine
from tokenflock.papers.stochastic_depth._pair import (
    antipodal_exponent,
    consensus_exponent,
    critical_beta,
    drift,
    variance,
)
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure, Theme
from tokenflock.reproduction.claim import Claim, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer

SOURCE = "arXiv 2601.21942: two tokens"
CAPTION = (
    "See the drift of the cosine $R$ of two tokens in one layer (left), and the exponents at"
    " opposite and equal places, of which the first changes sign at $β_c$ (right)."
)
DERIVED = "model of arXiv 2601.21942; formula derived here"
H, ONE, T = 0.05, 0.02, 4.0
BETAS = (0.5, 1.0, 2.0, 4.0)
COSINES = (-0.5, 0.5)
D = 8
NEAR = 1e-3


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    many = scale.pick(quick=40_000, paper=400_000)
    repeats = scale.pick(quick=600, paper=20_000)
    setting = (
        f"$n = 2$, layers with fresh values; one layer of $h = {ONE}$ from $R = −0.5$ and 0.5, $d"
        f" = {D}$, {many} pairs; exponents: $h = {H}$, $t = {T:g}$, $d = 3$ and {D}, {repeats}"
        " pairs"
    )
    steps = [_ends(_tokens(D, R), many, ONE, ONE)[..., 1] - R for R in COSINES]
    opposite = _ends(_close(D, -1), repeats, T, H)
    together = {d: _ends(_close(d, 1), repeats, T, H) for d in (3, D)}
    parts = {
        "step": _step(np.stack(steps)),
        "exponents": _exponents(1 + opposite, {d: 1 - R for d, R in together.items()}),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _tokens(d: int, R: float) -> np.ndarray:
    """Two tokens at a cosine."""
    x = np.zeros((2, d))
    x[:, 0], x[1, 1] = (1, R), np.sqrt(1 - R**2)
    return x


def _close(d: int, side: int) -> np.ndarray:
    """Two tokens next to each other, or next to opposite places."""
    x = np.zeros((2, d))
    x[:, 0], x[1, 1] = (1, side), NEAR
    return x


def _ends(x: np.ndarray, repeats: int, t: float, h: float) -> np.ndarray:
    """Cosines (beta, repeat, time) at time 0 and t."""
    law = Block(noise=ValueNoise(alone=True))
    run = flock.ensemble(
        law,
        x,
        over={"beta": list(BETAS)},
        repeats=repeats,
        t=t,
        frames=2,
        solver=Layer(h=h),
        observe=[MinimumCosine()],
        keep=True,
        dtype="float64",
    )
    return run.minimum_cosine.values


def _exponents(opposite: np.ndarray, together: dict[int, np.ndarray]) -> xr.Dataset:
    """Slopes of log(1 + R) and log(1 - R) between the two frames, means and errors."""
    apart = np.log(opposite[..., 1] / opposite[..., 0]) / T
    close = np.stack([np.log(gap[..., 1] / gap[..., 0]) / T for gap in together.values()])
    root = np.sqrt(apart.shape[-1])
    return xr.Dataset(
        {
            "antipodal": ("beta", apart.mean(-1)),
            "antipodal_error": ("beta", apart.std(-1) / root),
            "consensus": (("d", "beta"), close.mean(-1)),
            "consensus_error": (("d", "beta"), close.std(-1) / root),
        },
        coords={"beta": list(BETAS), "d": list(together)},
    )


def _step(change: np.ndarray) -> xr.Dataset:
    """Drift and variance from changes (R, beta, repeat) in one layer, with their errors."""
    count = change.shape[-1]
    centred = (change - change.mean(-1, keepdims=True)) ** 2
    dims = ("R", "beta")
    return xr.Dataset(
        {
            "drift": (dims, change.mean(-1) / ONE),
            "drift_error": (dims, change.std(-1) / ONE / np.sqrt(count)),
            "variance": (dims, centred.mean(-1) / ONE),
            "variance_error": (dims, centred.std(-1) / ONE / np.sqrt(count)),
        },
        coords={"R": list(COSINES), "beta": list(BETAS)},
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    step, rates = data["step"].to_dataset(), data["exponents"].to_dataset()
    figure, axes = panels(1, 2, size=(3.6, 2.8))
    R, beta = np.linspace(-1, 1, 201), np.linspace(0, 4.4, 200)
    with look(figure) as theme:
        for colour, b in zip(theme.palette, (0.5, 4.0)):
            axes[0].plot(R, drift(R, b, D), color=colour, label=rf"$\beta={b:g}$")
            axes[0].errorbar(
                step.R,
                step.drift.sel(beta=b),
                2 * step.drift_error.sel(beta=b),
                fmt="o",
                color=colour,
                markersize=4,
            )
        axes[0].axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        axes[0].set(xlabel="cosine $R$", ylabel="drift of $R$", xlim=(-1, 1))
        axes[0].set_title(f"One layer, $d={D}$ (dots: measured)")
        axes[0].legend(loc="upper right")
        axes[1].axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        _draw_exponents(axes[1], theme, beta, rates)
    return figure


def _draw_exponents(ax: Axes, theme: Theme, beta: np.ndarray, rates: xr.Dataset) -> None:
    """Curves of both exponents, and what was measured."""
    kinds = (
        ("antipodal", antipodal_exponent(beta, D), "opposite: $\\log(1+R)$"),
        ("consensus", np.full_like(beta, consensus_exponent(D)), "together: $\\log(1-R)$"),
    )
    for colour, (name, curve, words) in zip((theme.palette[2], theme.palette[3]), kinds):
        here = rates if name == "antipodal" else rates.sel(d=D)
        ax.plot(beta, curve, color=colour, label=words)
        ax.errorbar(
            rates.beta, here[name], 2 * here[f"{name}_error"], fmt="o", color=colour, markersize=4
        )
    ax.axvline(critical_beta(D), color=theme.soft, linestyle=":", linewidth=1)
    ax.text(critical_beta(D) + 0.06, 0.42, rf"$\beta_c={critical_beta(D):.3f}$", color=theme.soft)
    ax.set(xlabel=r"$\beta$", ylabel="exponent", xlim=(0, 4.4), ylim=(-1, 0.75))
    ax.set_title(f"Exponents, $d={D}$")
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.98))


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    step, rates = data["step"].to_dataset(), data["exponents"].to_dataset()
    moments = [claim for R in COSINES for b in (0.5, 4.0) for claim in _moments(step, R, b)]
    return [*moments, *_consensus(rates), *_antipodal(rates), _critical(rates)]


def _moments(step: xr.Dataset, R: float, beta: float) -> list[Claim]:
    here = step.sel(R=R, beta=beta)
    words = f"two tokens of cosine ${R:g}$ at $β = {beta:g}$, $d = {D}$, fresh values in a layer: "
    # the squared length of a token grows by h s in a layer: relative errors of 2h at most
    kinds = (
        ("drift", drift, "$R$ drifts at $b = (d−2+R²) s₁₂/d − (d−1) R s/d$", ONE),
        (
            "variance",
            variance,
            "the variance of $R$ grows at $a = 2 (1−R²)(s − R s₁₂)/d$",
            2 * ONE * float(variance(R, beta, D)),
        ),
    )
    return [
        Claim(
            f"{name}-{beta:g}-{'far' if R < 0 else 'near'}",
            words + formula,
            DERIVED,
            float(here[name]),
            monte_carlo(
                float(expected(R, beta, D)),
                float(here[f"{name}_error"]),
                slack=slack,
            ),
            error=float(here[f"{name}_error"]),
            note=f"$s = |u|²$, $s₁₂ = ⟨u₁, u₂⟩$; slack {slack:.2g} for the step $h = {ONE}$",
        )
        for name, expected, formula, slack in kinds
    ]


def _consensus(rates: xr.Dataset) -> list[Claim]:
    statements = []
    for d in rates.d.values:
        values = rates.consensus.sel(d=d).values
        error = np.sqrt((rates.consensus_error.sel(d=d).values ** 2).sum()) / len(values)
        statements.append(
            Claim(
                f"consensus-{d}",
                "near consensus $log(1 − R)$ falls at the rate $(d−1)/d$ for every $β$: $d"
                f" = {d}$, $β = 0.5$ to 4 together",
                DERIVED,
                float(values.mean()),
                monte_carlo(consensus_exponent(int(d)), error, slack=H),
                error=float(error),
                note=f"slack $h$ for layers of $h = {H}$",
            )
        )
    return statements


def _antipodal(rates: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"antipodal-{beta:g}",
            f"near opposite places, $β = {beta:g}$, $d = {D}$: $log(1 + R)$ moves at"
            " $((d−1)/cosh² β − 2)/d$",
            DERIVED,
            float(rates.antipodal.sel(beta=beta)),
            monte_carlo(
                antipodal_exponent(beta, D),
                float(rates.antipodal_error.sel(beta=beta)),
                slack=H / 2,
            ),
            error=float(rates.antipodal_error.sel(beta=beta)),
            note="positive: they leave; negative: opposite places attract",
        )
        for beta in rates.beta.values
    ]


def _critical(rates: xr.Dataset) -> Claim:
    """The zero of the line through the exponents as a function of 1/cosh^2."""
    x = 1 / np.cosh(rates.beta.values) ** 2
    mean, weight = rates.antipodal.values, 1 / rates.antipodal_error.values
    (slope, level), spread = np.polyfit(x, mean, 1, w=weight, cov="unscaled")
    zero = float(np.clip(-level / slope, 1e-6, 1))
    beta = np.arccosh(zero**-0.5)
    # d beta / d zero, with the error of the zero of a line
    tilt = np.array([zero, 1.0])
    width = float(np.sqrt(tilt @ spread @ tilt)) / abs(slope)
    slope_of_beta = 1 / (2 * zero * np.sqrt(1 - zero)) if zero < 1 else np.inf
    return Claim(
        "critical",
        f"opposite places begin to attract two tokens in $d = {D}$ at $cosh² β_c = (d−1)/2$,"
        f" $β_c = {critical_beta(D):.4f}$ (zero of the measured exponents as a line in"
        " $1/cosh² β$)",
        "abstract of arXiv 2601.21942: a phase transition in $β$ and $d$; its place derived here",
        float(beta),
        monte_carlo(critical_beta(D), width * slope_of_beta, slack=H),
        error=float(width * slope_of_beta),
    )

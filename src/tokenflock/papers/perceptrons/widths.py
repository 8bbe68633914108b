"""How narrow a cluster a perceptron can hold: $1/(2√β)$ needs a strength of $e^(−1/8)$.

Descent of $E = E_β + (1/2) ∫ v$, that is repulsive USA (clock PEAK: weights at most one) with a
gradient perceptron; $κ$ is the curvature of $v/2$ where it is greatest. Derived here, for $β$ of
any size. (1) Tokens at one place move apart at the rate $1 − κ$: below $κ = 1$ no minimiser has a
cluster of all its mass at one point. (2) One relu neuron makes a well of curvature $κ$ on the
circle; two halves rest in it at the gap $g$ with $sin^2(g/2) = ln(1/κ)/(2β)$, so that the gap is
$1/(2√β)$ at $κ = e^(−1/8)$, to order $1/β$. They hold together while $κ cos g − 1/2 + K(g)/2 ≥ 0$,
$K(g) = (β sin^2 g − cos g) e^(β (cos g − 1))$: for large $β$ down to $κ = 0.2847$, where each half
falls apart. (3) At a minimiser no token gains by moving, so the potential has no negative Laplacian
there: with $M$ the greatest and $−W$ the greatest negative of the kernel's Laplacian outside and
inside the distance $1/(2√β)$, the share of other tokens in that distance is at most $(M (1 − 1/n) +
κ)/(M + W)$. For $κ = 0$ and large $β$ this is 0.4027 on the circle. (A secondary source has arXiv
2601.21366 prove $0.5742 + O(e^(−β))$ where the second variation is definite; there tokens of an
atom do not part.)
"""

from __future__ import annotations

from typing import cast

import numpy as np
import xarray as xr
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.dynamics import FeedForward, NeuralODE, Unnormalised
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

SOURCE = "arXiv 2601.21366: the width of clusters"
CAPTION = (
    "See two halves of a cluster (marks; line: theory) close up as the perceptron grows, to a gap"
    " of $1/(2√β)$ at the strength $e^(−1/8)$ (left), and no token (marks) with more company than"
    " the bound (lines) allows (right)."
)
DERIVED = "derived here; cf. arXiv 2601.21366"
BETAS = (16.0, 64.0, 256.0)
HALF = float(np.exp(-1 / 8))  # the strength at which the gap is 1/(2 sqrt beta)
KAPPAS = (0.15, 0.2, 0.25, 0.4, 0.55, 0.7, 0.8, HALF, 0.93, 1.1)
RATES = (0.3, 0.7, 0.9, 1.1, 1.5)
STRENGTHS = (0.003, 0.1, 0.3, 0.6, 1.0)
WELL, CROWD, CROWD_BETA, WEAK = 32, 48, 16.0, 0.003
STEP = 0.5
NEURONS, LONG = 3, 2.0  # of a random perceptron: how many, and the length of their a


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    end, seeds = scale.pick(quick=(800.0, 2), paper=(4000.0, 16))
    angles = [[_well(beta, kappa, end) for kappa in KAPPAS] for beta in BETAS]
    wells = xr.Dataset(
        {"angle": (("beta", "kappa", "token"), angles)}, {"beta": list(BETAS), "kappa": [*KAPPAS]}
    )
    rates = xr.Dataset({"rate": ("kappa", [_rate(kappa) for kappa in RATES])}, {"kappa": [*RATES]})
    crowds = {f"crowds/{d}": _crowds(d, end, seeds) for d in (2, 3)}
    setting = (
        f"repulsive USA (peak clock) with a perceptron; well: circle, $n = {WELL}$, $β = 16$, 64,"
        f" 256, one relu neuron; crowds: $n = {CROWD}$, $d = 2$ and 3, $β = {CROWD_BETA:g}$,"
        f" {NEURONS} tanh neurons, {seeds} draws; RK4 ($h = {STEP}$) to $t = {end:g}$"
    )
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs={"setting": setting}), "wells": wells, "rates": rates} | crowds
    )


def _law(beta: float, W: Array, A: Array, activation: Activation) -> FeedForward:
    """Descent: attention that repels, with the perceptron W sigma(A x)."""
    base = Unnormalised(beta=beta, clock=Clock.PEAK, repulsive=True)
    return FeedForward(NeuralODE(W=W, A=A, activation=activation), base=base)


def _in_well(beta: float, kappa: float, angles: Array, end: float, h: float = STEP) -> Array:
    """The angles at the end of tokens in the well of one relu neuron."""
    a = np.array([[1.0, 0.0]])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    run = flock.simulate(
        _law(beta, kappa * a.T, a, Activation.RELU), x, t=end, frames=2, solver=RK4(h=h)
    )
    last = run.x.values[-1]
    return np.arctan2(last[:, 1], last[:, 0])


def _well(beta: float, kappa: float, end: float) -> Array:
    """Where tokens rest that start at random near the bottom, as many on the left as right."""
    side = abs(np.random.default_rng(0).normal(size=WELL // 2)) * 0.5 / np.sqrt(beta)
    return np.sort(_in_well(beta, kappa, np.concatenate([-side, side]), end))


def _rate(kappa: float, beta: float = 64.0, small: float = 1e-7, end: float = 4.0) -> float:
    """The rate at which a small distance of tokens grows."""
    angles = small * np.linspace(-1, 1, WELL)
    return float(np.log(np.ptp(_in_well(beta, kappa, angles, end, h=0.25)) / (2 * small)) / end)


def _crowds(d: int, end: float, seeds: int) -> xr.Dataset:
    """Uniform tokens that have come to rest with random perceptrons: for each token the share of
    others within 1/(2 sqrt beta), and the mean curvature of v/2 where it is.
    """
    shares, curvatures = [], []
    for strength in STRENGTHS:
        for seed in range(seeds):
            a, omega = _neurons(d, strength, seed)
            law = _law(CROWD_BETA, -(a * omega[:, None]).T, a, Activation.TANH)
            start = Uniform(n=CROWD, d=d)
            run = flock.simulate(law, start, t=end, frames=2, solver=RK4(h=STEP), seed=seed)
            x = run.x.values[-1]
            angle = np.arccos(np.clip(x @ x.T, -1, 1))
            shares.append((angle <= _distance(CROWD_BETA)).sum(1) - 1)
            curvatures.append(_curvature(x, a, omega))
    shape = len(STRENGTHS), seeds, CROWD
    dims = "strength", "seed", "token"
    return xr.Dataset(
        {
            "share": (dims, np.reshape(shares, shape) / CROWD),
            "curvature": (dims, np.reshape(curvatures, shape)),
        },
        {"strength": list(STRENGTHS)},
    )


def _distance(beta: float) -> float:
    """1/(2 sqrt beta)."""
    return 0.5 / np.sqrt(beta)


def _neurons(d: int, strength: float, seed: int) -> tuple[Array, Array]:
    """Random neurons a (m, d) of weights omega (m,): the greatest mean curvature is `strength`."""
    random = np.random.default_rng([d, seed])
    a = random.normal(size=(NEURONS, d))
    a *= LONG / np.linalg.norm(a, axis=-1, keepdims=True)
    omega = random.choice([-1.0, 1.0], NEURONS)
    x = random.normal(size=(20_000, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return a, omega * strength / _curvature(x, a, omega).max()


def _curvature(x: Array, a: Array, omega: Array) -> Array:
    """The Laplacian of v/2 = sum_j omega_j log cosh(<a_j, x>) on the sphere, over d - 1."""
    d, z = x.shape[-1], x @ a.T
    turn = (LONG**2 - z**2) / np.cosh(z) ** 2 - (d - 1) * z * np.tanh(z)
    return turn @ omega / (d - 1)


def gap(kappa: Array | float, beta: float) -> Array:
    """The gap of two halves at rest: sin^2(g/2) = ln(1/kappa) / (2 beta), none from kappa = 1 on
    (derived here).
    """
    sine = np.sqrt(np.maximum(-np.log(kappa), 0) / (2 * beta))
    return 2 * np.arcsin(sine)


def kernel_bend(angle: Array | float, beta: float, d: int) -> Array:
    """The Laplacian of the kernel e^(beta (cos - 1)) / beta at an angle, over d - 1."""
    bend = beta * np.sin(angle) ** 2 / (d - 1) - np.cos(angle)
    return bend * np.exp(beta * (np.cos(angle) - 1))


def falls_apart(beta: float) -> float:
    """The strength below which the halves of a cluster fall apart (derived here)."""

    def bend(kappa: float) -> float:
        g = float(gap(kappa, beta))
        return float(kappa * np.cos(g) - 0.5 + kernel_bend(g, beta, 2) / 2)

    return cast(float, brentq(bend, 0.1, 0.5))


def most_company(curvature: Array | float, beta: float, d: int, n: int) -> Array:
    """The bound on the share of other tokens within 1/(2 sqrt beta) of a token at rest (derived
    here).
    """
    near_by = np.linspace(0, _distance(beta), 2001)
    all_angles = np.linspace(0, np.pi, 20_001)
    W = -kernel_bend(near_by, beta, d).max()
    M = kernel_bend(all_angles, beta, d).max()
    return (M * (1 - 1 / n) + np.asarray(curvature)) / (M + W)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.6, 3.0))
    _draw_gaps(axes[0], data["wells"].to_dataset())
    _draw_company(axes[1], data)
    return figure


def _draw_gaps(ax: Axes, wells: xr.Dataset) -> None:
    kappa = np.linspace(falls_apart(256.0), 1, 400)
    width = np.ptp(wells.angle.values, axis=-1)
    with look(ax) as theme:
        for colour, mark, beta, row in zip(theme.palette, "os^", BETAS, width):
            ax.plot(
                KAPPAS,
                np.sqrt(beta) * row,
                mark,
                color=colour,
                markersize=4,
                markerfacecolor="none",
                label=rf"$\beta={beta:g}$",
            )
        ax.plot(kappa, 16 * gap(kappa, 256.0), color=theme.ink, linewidth=1, label="two halves")
        ax.plot([0, HALF, HALF], [0.5, 0.5, 0], ":", color=theme.soft, linewidth=1)
        ax.text(0.13, 0.46, r"$1/(2\sqrt{\beta})$", color=theme.soft, va="top")
        ax.set(xlabel=r"strength $\kappa$ of the perceptron", xlim=(0.1, 1.15), ylim=(0, None))
        ax.text(0.27, 2.5, "three groups or more", color=theme.soft)
        ax.set_ylabel(r"width of the cluster times $\sqrt{\beta}$")
        ax.set_title("One neuron, circle")
        ax.legend(loc="upper right")


def _draw_company(ax: Axes, data: xr.DataTree) -> None:
    with look(ax) as theme:
        for colour, mark, d in zip(theme.palette, "os", (2, 3)):
            part = data[f"crowds/{d}"].to_dataset()
            x, y = part.curvature.values.ravel(), part.share.values.ravel()
            style = {"markersize": 3, "markerfacecolor": "none", "mew": 0.6}
            ax.plot(x, y, mark, color=colour, label=f"tokens, $d={d}$", **style)
            line = np.array([min(x.min(), -0.2), 1.0])
            bound = most_company(line, CROWD_BETA, d, CROWD)
            ax.plot(line, bound, color=colour, linewidth=1.2, label=f"bound, $d={d}$")
        ax.set(xlabel="mean curvature of $v/2$ at the token", ylim=(-0.02, 1.02))
        ax.set_ylabel(r"share of tokens within $1/(2\sqrt{\beta})$")
        ax.set_title(rf"Random neurons, $\beta={CROWD_BETA:g}$")
        ax.legend(loc="upper left")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    wells, rates = data["wells"].to_dataset(), data["rates"].to_dataset()
    return [
        _rate_claim(rates),
        *(_gap_claim(wells, beta) for beta in BETAS),
        _half_claim(wells),
        _point_claim(wells),
        *_apart_claims(wells),
        *(_company_claim(data[f"crowds/{d}"].to_dataset(), d) for d in (2, 3)),
        _weak_claim(data["crowds/2"].to_dataset()),
    ]


def _rate_claim(rates: xr.Dataset) -> Claim:
    off = abs(rates.rate - (1 - rates.kappa)).max()
    return Claim(
        "rate",
        "circle, $β = 64$: tokens at one place in a well of curvature $κ = 0.3$ to 1.5 move"
        " apart at the rate $1 − κ$ (greatest difference)",
        DERIVED,
        float(off),
        at_most(1e-5),
        note="RK4 with $h = 1/4$ is off by $|1 − κ|⁵h⁴/120 ≤ 6e−6$; a cluster at a point is no"
        " minimiser below $κ = 1$, and is one beyond",
    )


def _gap_claim(wells: xr.Dataset, beta: float) -> Claim:
    between_ends = (wells.kappa > falls_apart(beta) + 0.02) & (wells.kappa < 1)
    part = wells.sel(beta=beta, kappa=wells.kappa[between_ends])
    width = np.ptp(part.angle.values, axis=-1)
    off = abs(width / gap(part.kappa.values, beta) - 1).max()
    return Claim(
        f"gap-{beta:g}",
        f"circle, $β = {beta:g}$: two halves rest at the gap $g$ with $sin²(g/2) ="
        f" ln(1/κ)/(2β)$, $κ = {float(part.kappa[0]):g}$ to ${float(part.kappa[-1]):g}$"
        " (greatest relative error)",
        DERIVED,
        float(off),
        at_most(1e-6),
    )


def _half_claim(wells: xr.Dataset) -> Claim:
    beta = BETAS[-1]
    angles = wells.angle.sel(beta=beta).values[KAPPAS.index(HALF)]
    return Claim(
        "half",
        f"at the strength $κ = e^(−1/8)$ the cluster of all tokens has the width $1/(2√β)$"
        f" (width times $√β$, $β = {beta:g}$)",
        DERIVED + " (its width, in the form of a secondary source)",
        float(np.sqrt(beta) * np.ptp(angles)),
        near(0.5, 1 / beta),
        note="$κ = e^(−1/8) = 0.8825$ is above 0.1655, below which a secondary source has arXiv"
        " 2601.21366 forbid such a cluster",
    )


def _point_claim(wells: xr.Dataset) -> Claim:
    width = np.ptp(wells.angle.sel(kappa=KAPPAS[-1]).values, axis=-1) * np.sqrt(BETAS)
    return Claim(
        "point",
        f"beyond $κ = 1$ ($κ = {KAPPAS[-1]:g}$) all tokens are one point (greatest width times"
        " $√β$)",
        DERIVED,
        float(width.max()),
        at_most(1e-4),
    )


def atoms(angles: Array, beta: float) -> int:
    """How many groups of tokens stand on the circle, more than 0.1/sqrt(beta) apart."""
    return 1 + int((np.diff(np.sort(angles)) > 0.1 / np.sqrt(beta)).sum())


def _apart_claims(wells: xr.Dataset) -> list[Claim]:
    groups = {
        kappa: [atoms(wells.angle.sel(beta=beta, kappa=kappa).values, beta) for beta in BETAS]
        for kappa in (0.25, 0.4)
    }
    edge = f"for large $β$ at $κ = {falls_apart(1e4):.4f}$"
    known = np.isfinite(wells.angle.values).all()
    return [
        Claim(
            "together",
            "two halves hold together where $κ cos g − 1/2 + K(g)/2 ≥ 0$: groups at $κ = 0.4$,"
            " greatest over $β$",
            DERIVED,
            float(max(groups[0.4])) if known else np.nan,
            near(2, 0.1),
            note="they fall apart " + edge,
        ),
        Claim(
            "apart",
            "and fall apart below: groups at $κ = 0.25$, least over $β$",
            DERIVED,
            float(min(groups[0.25])) if known else np.nan,
            at_least(3),
            note=edge,
        ),
    ]


def _company_claim(part: xr.Dataset, d: int) -> Claim:
    bound = most_company(part.curvature.values, CROWD_BETA, d, CROWD)
    share = part.share.values
    most = float((share - bound).max())
    return Claim(
        f"company-{d}",
        f"uniform tokens at rest with random tanh neurons ($d = {d}$, $β = {CROWD_BETA:g}$) have"
        " no more company within $1/(2√β)$ than $(M (1 − 1/n) + κ)/(M + W)$, $κ$ the mean"
        " curvature of $v/2$ there (greatest share minus bound)",
        DERIVED,
        most,
        between(-1.0, 0.0),
        note=f"the greatest share is {share.max():.3f}, the closest bound above its share by"
        f" {-most:.3f}",
    )


def _weak_claim(part: xr.Dataset) -> Claim:
    weak = part.share.sel(strength=WEAK).values
    known = np.isfinite(part.curvature.values).all()
    return Claim(
        "weak",
        "a weak perceptron holds no cluster: greatest share of tokens within $1/(2√β)$ of one,"
        f" circle, $β = {CROWD_BETA:g}$, $κ = {WEAK:g}$",
        "arXiv 2601.21366 in the form of a secondary source: at most $0.5742 + O(e^(−β))$",
        float(weak.max() + 1 / CROWD) if known else np.nan,
        at_most(0.5742),
        note="derived here, with tokens that may part:"
        f" {float(most_company(WEAK, CROWD_BETA, 2, 10**9)):.4f}; the uniform measure has"
        f" {_distance(CROWD_BETA) / np.pi:.3f}",
    )

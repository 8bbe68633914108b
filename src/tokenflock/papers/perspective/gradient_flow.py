"""Gradient flows: the first variation of the energy, and how fast the energy changes.

The first variation is the derivative of the library's energy by the weight of a token of weight
zero; its tangential gradient is taken by central differences (step $1e-5$) at 20 points of $S^2$,
for 12 random tokens with random weights, and compared with the velocity that the library gives a
token of weight zero there. Five flows of 12 uniform tokens in $d = 3$ (adaptive solver, tolerance
$1e-12$) are then sampled every 0.005 up to $t = 2$: differences of order 8 of the energy against
the sum of squared velocities in the metric of each. For two tokens SA and USA are compared at equal
energy, which removes the clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

import tokenflock as flock
from tokenflock.dynamics import Attention, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.observables import Dissipation, Energy
from tokenflock.observables.energy import Convention
from tokenflock.papers.perspective._pointwise import energy_by_weight, unit, velocity
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Adaptive
from tokenflock.starts import Given, Uniform
from tokenflock.starts.start import Start
from tokenflock.theory import dirac_energy

SOURCE = "Lemmas 3.6 and 3.7"
CAPTION = (
    "See the slope of the energy, from differences, on the squared length of the velocity "
    "in the metric of each law: the two lines are one."
)
BETAS = (0.5, 2.0, 5.0)
N, D, BETA, STEP, END = 12, 3, 2.0, 0.005, 2.0
# a symmetric matrix, neither positive nor negative
SHAPE = np.array([[1.0, 0.3, 0.0], [0.3, -0.6, 0.2], [0.0, 0.2, 0.4]])
# first derivative, order 8
EIGHTH = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {
        "variation": _variations(scale.pick(quick=20, paper=200)),
        "flows": _flows(),
        "orbits": _orbits(),
    }
    setting = f"$n = {N}$, $d = {D}$, $β = {BETA:g}$ (first variation: $β = 0.5$, 2, 5)"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _variations(points: int) -> xr.Dataset:
    """For each beta: error of grad of the first variation, and the factor between grad log Z and
    the field X.
    """
    rng = np.random.default_rng(0)
    x, w = unit(rng.normal(size=(N, D))), rng.dirichlet(np.ones(N))
    values = np.array(
        [[_at_point(unit(q), x, w, beta) for q in rng.normal(size=(points, D))] for beta in BETAS]
    )
    names = ("error", "factor", "residual")
    return xr.Dataset(
        {name: (("beta", "point"), values[..., k]) for k, name in enumerate(names)},
        coords={"beta": list(BETAS)},
    )


def _at_point(
    q: np.ndarray, x: np.ndarray, w: np.ndarray, beta: float
) -> tuple[float, float, float]:
    tokens, weights = np.vstack([q, x]), np.concatenate([[0.0], w])
    field = velocity(Unnormalised(beta=beta), tokens, weights)[0]
    X = velocity(SelfAttention(beta=beta), tokens, weights)[0]

    def variation(point: np.ndarray) -> float:
        return float(energy_by_weight(np.vstack([point, x]), beta, weights)[0])

    gradient = _gradient(variation, q)
    # Z = beta times the first variation
    log_Z = _gradient(lambda point: np.log(beta * variation(point)), q)
    error = np.linalg.norm(gradient - field) / np.linalg.norm(field)
    factor = log_Z @ X / (X @ X)
    residual = np.linalg.norm(log_Z - factor * X) / np.linalg.norm(log_Z)
    return float(error), float(factor), float(residual)


def _gradient(
    function: Callable[[np.ndarray], float], q: np.ndarray, h: float = 1e-5
) -> np.ndarray:
    """Tangential gradient at q on the sphere, by central differences along great circles."""
    basis = np.linalg.svd(q[None])[2][1:]
    slopes = [
        (function(np.cos(h) * q + np.sin(h) * e) - function(np.cos(h) * q - np.sin(h) * e))
        / (2 * h)
        for e in basis
    ]
    return np.array(slopes) @ basis


def _flows() -> xr.Dataset:
    """Energy, its measured rate of change, and the rate the metric predicts, for five flows."""
    laws = {
        "SA": SelfAttention(beta=BETA),
        "USA": Unnormalised(beta=BETA),
        "SA, V = -I": SelfAttention(beta=BETA, repulsive=True),
        "SA, V = D": Attention(beta=BETA, K=SHAPE, V=SHAPE),
        "SA, V = -D": Attention(beta=BETA, K=SHAPE, V=-SHAPE),
    }
    parts = [
        (_matrix_flow(law) if isinstance(law, Attention) else _flow(law)) for law in laws.values()
    ]
    return xr.concat(parts, xr.DataArray(list(laws), dims="law", name="law"))


def _flow(law: Dynamics) -> xr.Dataset:
    run = _run(law).pipe(flock.measure, [Energy(), Dissipation()])
    return _rates(run.energy.values, run.dissipation.values, run.time.values)


def _matrix_flow(law: Attention) -> xr.Dataset:
    """SA with V = +- Q^T K = +- D, whose energy is (1/2 beta) sum_ij e^(beta <D x_i, x_j>) in the
    metric sum_i Z_i |.|^2.
    """
    run = _run(law).pipe(flock.measure, Energy(beta=BETA, D=SHAPE, convention=Convention.SUM))
    Z = np.exp(BETA * np.einsum("tia,ab,tjb->tij", run.x.values, SHAPE, run.x.values)).sum(axis=-1)
    speed = np.array([(velocity(law, x) ** 2).sum(axis=-1) for x in run.x.values])
    sign = np.sign(np.sum(law.V * SHAPE))
    return _rates(run.energy.values, sign * (Z * speed).sum(axis=-1), run.time.values)


def _run(law: Dynamics, start: Start = Uniform(n=N, d=D)) -> xr.Dataset:
    times = np.arange(round(END / STEP) + 1) * STEP
    return flock.simulate(law, start, t=END, times=times, solver=Adaptive(rtol=1e-12), seed=1)


def _rates(energy: np.ndarray, predicted: np.ndarray, times: np.ndarray) -> xr.Dataset:
    inner = slice(4, -4)
    measured = np.correlate(energy, EIGHTH, mode="valid") / STEP
    values = {"energy": energy[inner], "measured": measured, "predicted": predicted[inner]}
    return xr.Dataset(
        {name: ("time", value) for name, value in values.items()}, coords={"time": times[inner]}
    )


def _orbits() -> xr.Dataset:
    """How far the orbits of SA and USA are apart at equal energy, for n = 2 and n = 3."""
    return xr.Dataset({"gap": ("n", [_orbit_gap(n) for n in (2, 3)])}, coords={"n": [2, 3]})


def _orbit_gap(n: int) -> float:
    paths = [_orbit(law, n) for law in (SelfAttention(beta=BETA), Unnormalised(beta=BETA))]
    clock = np.linspace(paths[0].x[0], min(path.x[-1] for path in paths), 200)
    return float(np.linalg.norm(paths[0](clock) - paths[1](clock), axis=-1).max())


def _orbit(law: Dynamics, n: int) -> CubicSpline:
    """n tokens (the others weigh nothing) as a function of the energy, which grows, up to 95 % of
    its maximum.
    """
    x, w = unit(np.random.default_rng(4).normal(size=(N, D))), np.arange(N) < n
    run = _run(law, Given(x, w=w.astype(float))).pipe(flock.measure, Energy())
    early = run.energy.values < 0.95 * dirac_energy(BETA)
    return CubicSpline(run.energy.values[early], run.x.values[early, :n])


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    flows = data["flows"].to_dataset()
    figure, axes = panels(2, 3, size=(2.9, 2.1))
    for ax, law in zip(axes, flows.law.values):
        flow = flows.sel(law=law)
        with look(ax) as theme:
            ax.axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
            ax.plot(
                flow.time,
                flow.predicted,
                color=theme.palette[1],
                linewidth=2.4,
                label="metric: squared velocities",
            )
            ax.plot(
                flow.time,
                flow.measured,
                "--",
                color=theme.palette[0],
                linewidth=1.1,
                label="differences of the energy",
            )
            ax.set_title(re.sub(r"V = (.+)", r"$V = \1$", str(law)))
    for ax in axes[2:5]:
        ax.set_xlabel("$t$")
    for ax in axes[::3]:
        ax.set_ylabel(r"$dE/dt$")
    axes[5].legend(*axes[0].get_legend_handles_labels(), loc="center")
    axes[5].set_axis_off()
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_variation_claims(data["variation"].to_dataset()),
        *_flow_claims(data["flows"].to_dataset()),
        *_orbit_claims(data["orbits"].to_dataset()),
    ]


def _variation_claims(points: xr.Dataset) -> list[Claim]:
    ratio = (points.factor / points.beta).values
    at = points.sel(beta=2.0)
    return [
        Claim(
            "first-variation",
            f"$∇δE_β[μ](x) = P_x ∫ e^{{β⟨x, y⟩}} y dμ(y)$, the field of USA: largest"
            " relative error of finite differences ($β = 0.5$, 2, 5;"
            f" {points.sizes['point']} points each)",
            "Lemma 3.6",
            float(points.error.max()),
            at_most(1e-6),
        ),
        Claim(
            "log-partition",
            "$∇ log Z_{β,μ} = β X[μ]$ for the field $X$ of SA: the factor at $β = 2$",
            "(3.7)",
            float(at.factor.mean()),
            near(2.0, 1e-6),
            note=(
                f"factor/$β$ over $β = 0.5$, 2, 5: ${ratio.min():.9f}$ to"
                f" ${ratio.max():.9f}$; the two vectors are parallel to within"
                f" ${float(points.residual.max()):.1e}$"
            ),
            erratum=(
                "(3.7) prints $X[μ] = ∇ log ∫ β⁻¹ e^{β⟨x, y⟩} dμ(y)$, a factor of 1 in"
                " place of $β$; right is $X[μ] = β⁻¹ ∇ log Z_{β,μ}$"
            ),
        ),
    ]


SLIP = (
    "(3.15) has the slip of (3.7): it holds with $δE = β⁻¹ Z$ in the numerator and $Z$ in"
    " the denominator"
)


def _flow_claims(flows: xr.Dataset) -> list[Claim]:
    said = {
        "SA": (
            "sa",
            "$dE/dt = ∫ |X|² Z dμ = (1/n) Σ |ẋ_i|² Z_i/n$ along SA",
            "Lemma 3.7, (3.15) with $δE = Z/β$",
        ),
        "USA": ("usa", "$dE/dt = (1/n) Σ |ẋ_i|²$ along USA", "(3.6)"),
        "SA, V = -I": (
            "repulsive",
            "$dE/dt = −(1/n) Σ |ẋ_i|² Z_i/n$ along SA with $V = −I$",
            "Lemma 3.7, section 9.1",
        ),
        "SA, V = D": (
            "matrix",
            "$(1/(2β)) ΣΣ e^{β⟨D x_i, x_j⟩}$ grows at rate $Σ Z_i |ẋ_i|²$ if $V = QᵀK = D$",
            "section 3.4",
        ),
        "SA, V = -D": (
            "matrix-repulsive",
            "$(1/(2β)) ΣΣ e^{β⟨D x_i, x_j⟩}$ falls at rate $Σ Z_i |ẋ_i|²$ if $V = −QᵀK$",
            "section 3.4",
        ),
    }
    statements = []
    for law, (name, statement, source) in said.items():
        flow = flows.sel(law=law)
        mismatch = float(
            np.abs(flow.measured - flow.predicted).max() / np.abs(flow.predicted).max()
        )
        way = -1 if "-" in law else 1
        gain = float((way * np.diff(flow.energy)).min() / np.abs(flow.energy).max())
        text = (
            f"{statement} ($n = {N}$, $d = {D}$, $β = {BETA:g}$, $t ≤ {END:g}$): largest"
            " mismatch over largest rate"
        )
        note = (
            f"the energy is monotone: least change between samples ${gain:.1e}$ of its size, in the"
            " right direction"
        )
        erratum = SLIP if law == "SA" else ""
        statements.append(
            Claim(name, text, source, mismatch, at_most(1e-8), note=note, erratum=erratum)
        )
    return [*statements, _monotone(flows)]


def _monotone(flows: xr.Dataset) -> Claim:
    way = np.array([-1 if "-" in law else 1 for law in flows.law.values])
    changes = (
        way[:, None] * np.diff(flows.energy.values, axis=-1) / np.abs(flows.energy.values[:, 1:])
    )
    statement = (
        "along all five flows the energy never moves the wrong way between samples: least relative"
        " change"
    )
    return Claim("monotone", statement, "Lemma 3.7", float(changes.min()), at_least(-1e-12))


def _orbit_claims(orbits: xr.Dataset) -> list[Claim]:
    two, three = (float(orbits.gap.sel(n=n)) for n in (2, 3))
    statement = (
        "for $n = 2$ the orbits of SA and USA are the same: largest distance at equal"
        f" energy ($β = {BETA:g}$)"
    )
    contrast = f"for $n = 3$ they differ: largest distance at equal energy ($β = {BETA:g}$)"
    return [
        Claim("orbits-2", statement, "Remark 3.8", two, at_most(1e-6)),
        Claim("orbits-3", contrast, "Remark 3.8", three, at_least(1e-3)),
    ]

"""Beyond $β_*$ the branch of ordered states bends back, folds, and wins before $κ_c$.

USA with noise of strength $2/κ$ on the circle, $S^2$ and $S^7$. The ordered states are followed
from $κ_c = β/λ_1$ by pseudo-arclength continuation (`meanfield.branch`): below the tricritical
$β_*$ they exist for $κ > κ_c$ only; above it they fold back, are stable from the fold on, and have
the better free energy from the first-order point on. On the circle they are checked by formulas
that do not use the solver: $log ρ − (κ/β) e^(β cos) ∗ ρ$ is constant, and fold and first-order
point, where the free energy $(1/(2β)) ∫∫ e^(β cos) ρ ρ − (1/κ) ∫ ρ log ρ$ is that of the uniform
measure, come from the equations of the moments.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import gamma, iv

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import branch
from tokenflock.papers.noisy_transformers._curves import smooth
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.theory import critical_noise, tricritical_beta

SOURCE = "arXiv 2606.05140: the dichotomy"
CAPTION = (
    "See the order parameter (length of the mean token) of all stationary states over the noise"
    " $κ$: below $β_*$ the branch rises to the right, beyond it bends back to a fold (dot);"
    " full lines are stable, dashed ones unstable, the red one is the uniform state."
)
STATED = "abstract of arXiv 2606.05140"
# d: (beta below and above beta_*, lower end of kappa / kappa_c, nodes)
CASES = {2: ((1.0, 4.0), 0.9, 96), 3: ((1.0, 2.5), 0.9, 64), 8: ((1.0, 1.8), 0.9, 64)}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    step = scale.pick(quick=0.2, paper=0.05)
    parts = {}
    for d, (betas, low, points) in CASES.items():
        for name, beta in zip(("below", "above"), betas):
            parts[f"{name}{d}"] = _branch(d, beta, low, points, step)
    setting = (
        "USA with noise; $d = 2$: $β = 1$, 4; $d = 3$: $β = 1$, 2.5; $d = 8$: $β = 1$, 1.8;"
        " $κ/κ_c$ from 0.9 to 1.05"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _branch(d: int, beta: float, low: float, points: int, step: float) -> xr.Dataset:
    """One branch, kappa in units of kappa_c."""
    unit = float(critical_noise(beta, d))
    law = Noisy(Unnormalised(beta))
    states = branch(law, within=(low * unit, 1.05 * unit), d=d, points=points, step=step)
    kept = xr.Dataset(
        {
            "order": states.order_parameter,
            "stable": states.stable,
            "leaves": states.leaves,
            "fold": states.fold / unit,
            "fold_order": states.fold_order_parameter,
            "first": states.transition / unit,
            "first_order": states.transition_order_parameter,
        }
    )
    kept = kept.reset_coords(drop=True).assign(kappa=("point", states.kappa.values / unit))
    if d == 2:
        last = states.density.isel(point=-1).values
        kept["off"] = _off(last, beta, float(states.kappa[-1]))
    return kept.assign_attrs(d=d, beta=beta).drop_encoding()


def _off(rho: Array, beta: float, kappa: float) -> float:
    """How far log rho - (kappa/beta) kernel * rho is from a constant."""
    theta = 2 * np.pi * np.arange(len(rho)) / len(rho)
    kernel = np.exp(beta * np.cos(theta[:, None] - theta))
    told = np.log(rho) - kappa / beta * kernel @ rho * (2 * np.pi / len(rho))
    return float(np.ptp(told))


def stability_threshold(beta: float, d: int) -> float:
    """K_# = beta^(d/2) / (2^(d/2) Gamma(d/2) I_(d/2)(beta)), as printed."""
    return float(beta ** (d / 2) / (2 ** (d / 2) * gamma(d / 2) * iv(d / 2, beta)))


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, len(CASES), size=(2.9, 2.8))
    for ax, d in zip(axes, CASES):
        with look(ax) as theme:
            for colour, name in zip((theme.palette[3], theme.palette[0]), ("below", "above")):
                part = data[f"{name}{d}"].to_dataset()
                words = rf"$\beta={part.attrs['beta']:g}$"
                kappa, order, stable = smooth(part.kappa, part.order, part.stable)
                for chosen, dash in ((stable > 0.5, "-"), (stable <= 0.5, "--")):
                    shown = np.where(_wide(chosen), order, np.nan)
                    ax.plot(kappa, shown, dash, color=colour, label=words if dash == "-" else None)
                ax.plot(part.fold, part.fold_order, "o", color=colour, markersize=4)
                ax.plot(part["first"], part.first_order, "D", color=theme.palette[1], markersize=5)
            ax.plot([0.9, 1], [0, 0], color=theme.palette[2])
            ax.plot([1, 1.05], [0, 0], "--", color=theme.palette[2])
            ax.set(xlim=(0.9, 1.05), ylim=(-0.02, 0.92), xlabel=r"$\kappa/\kappa_c$")
            ax.set_title(rf"$d={d}$, $\beta_*={float(tricritical_beta(d)):.3f}$")
            ax.legend(loc="upper left")
    axes[0].set_ylabel("order parameter")
    axes[0].annotate("diamond: first-order point\ndot: fold", (0.905, 0.1), fontsize=8)
    return figure


def _wide(chosen: Array) -> Array:
    """A run of points and its neighbours, so that lines meet."""
    return chosen | np.roll(chosen, 1) | np.roll(chosen, -1)


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    said = [claim for d in CASES for claim in _dimension(data, d)]
    return [*said, *_circle(data["above2"].to_dataset(), data["below2"].to_dataset())]


def _dimension(data: xr.DataTree, d: int) -> list[Claim]:
    low, high = data[f"below{d}"].to_dataset(), data[f"above{d}"].to_dataset()
    beta, star = high.attrs["beta"], float(tricritical_beta(d))
    return [
        Claim(
            f"leaves-{d}",
            f"$d = {d}$, $β = {beta:g}$: order leaves the uniform measure at $κ = 2 K_#$,"
            f" $K_# = β^(d/2)/(2^(d/2) Γ(d/2) I_{{d/2}}(β))$",
            STATED,
            float(high.leaves),
            near_relative(2 * stability_threshold(beta, d), 1e-9),
            note="the coupling $K$ of the paper is $κ/2$ here",
        ),
        Claim(
            f"continuous-{d}",
            f"$d = {d}$, $β = {low.attrs['beta']:g} < β_* = {star:.4f}$: ordered states"
            " exist for $κ > κ_c$ only (least $κ/κ_c$ of the branch)",
            STATED + " (continuous transition)",
            float(low.kappa.min()),
            between(1 - 1e-9, 1 + 1e-9),
        ),
        Claim(
            f"stable-{d}",
            f"and they are stable there, $d = {d}$ (share of the branch beyond its first point)",
            STATED,
            float(low.stable.isel(point=slice(1, None)).mean()),
            between(1, 1),
        ),
        Claim(
            f"first-{d}",
            f"$d = {d}$, $β = {beta:g} > β_* = {star:.4f}$: the free energies are equal"
            " before $κ_c$, so the transition is discontinuous ($κ/κ_c$ of the first-order"
            " point)",
            STATED + " (discontinuous transition)",
            float(high["first"].max()) if high.sizes.get("transitions") else np.nan,
            between(0.9, 1 - 1e-6),
            note=f"jump of the order parameter ${_only(high.first_order):.4f}$",
        ),
        Claim(
            f"fold-{d}",
            "there the ordered states begin at a fold below the first-order point, $d ="
            f" {d}$ (distance in $κ/κ_c$)",
            "derived here (continuation)",
            _only(high["first"]) - _only(high.fold),
            at_least(1e-4),
            note=f"fold at ${_only(high.fold):.4f}$, order parameter"
            f" ${_only(high.fold_order):.4f}$",
        ),
    ]


def _only(values: xr.DataArray) -> float:
    return float(values.values[0]) if values.size else float("nan")


def _circle(high: xr.Dataset, low: xr.Dataset) -> list[Claim]:
    fold, first = fold_by_moments(4.0), first_by_moments(4.0)
    return [
        Claim(
            "stationary",
            "circle, $β = 1$ and 4: at the end of the branch $log ρ − (κ/β) e^(β cos) ∗ ρ$"
            " is constant (spread)",
            "stationary states of arXiv 2412.14813; formula derived here",
            float(max(high.off, low.off)),
            at_most(1e-6),
        ),
        Claim(
            "fold-number",
            "circle, $β = 4$: the fold is where the equations of 20 moments have it"
            f" ($κ/κ_c = {fold:.6f}$)",
            "derived here",
            _only(high.fold),
            near(fold, 2e-6),
        ),
        Claim(
            "first-number",
            "circle, $β = 4$: by 20 moments the state at the first-order point has the free energy"
            f" of the uniform measure at $κ/κ_c = {first:.6f}$",
            "derived here",
            _only(high["first"]),
            near(first, 2e-6),
        ),
    ]


def by_moments(beta: float, m1: float, nodes: int = 256) -> tuple[float, float]:
    """(kappa / kappa_c, free energy less that of the uniform measure) of the state of given m_1.

    The equations m_k = E cos k theta, rho ~ exp((2 kappa/beta) sum_k I_k m_k cos k theta), are
    iterated with kappa chosen so that the first holds. The free energy is then (1/kappa) log of the
    mean of that exponential less sum_k I_k m_k^2 / beta.
    """
    k, theta = np.arange(1, 21), 2 * np.pi * np.arange(nodes) / nodes
    waves, weights = np.cos(np.outer(k, theta)), iv(k, beta)
    m, at = m1 ** k.astype(float), 0.95 * beta / iv(1, beta)
    for _ in range(3000):
        rho = np.exp(2 * at / beta * (weights * m) @ waves)
        new = waves @ rho / rho.sum()
        step = at * (m1 / new[0]) ** 0.5
        m, done = np.append(m1, new[1:]), abs(step / at - 1) < 1e-13
        at = step
        if done:
            break
    rho = np.exp(2 * at / beta * (weights * m) @ waves)
    # ascending: order wins where this is positive
    surplus = np.log(rho.mean()) / at - float((weights * m**2).sum()) / beta
    return float(at * iv(1, beta) / beta), float(surplus)


def fold_by_moments(beta: float) -> float:
    """kappa / kappa_c of the fold, by moments: the least kappa over states of given m_1."""
    m1 = np.linspace(0.5, 0.6, 11)
    fit = np.polynomial.Polynomial.fit(m1, [by_moments(beta, m)[0] for m in m1], 6)
    roots = fit.deriv().roots()
    place = roots[(abs(roots.imag) < 1e-9) & (abs(roots.real - 0.55) < 0.05)].real
    return float(fit(place).min()) if place.size else float("nan")


def first_by_moments(beta: float) -> float:
    """kappa / kappa_c at which the ordered state has the free energy of the uniform measure."""
    m1 = cast(float, brentq(lambda m: by_moments(beta, m)[1], 0.6, 0.75, xtol=1e-12))
    return by_moments(beta, m1)[0]

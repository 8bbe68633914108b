"""With softmax the ordered branch leaves forwards at every $β$: no tricritical $β$ was found.

Question: noisy USA orders with a jump for $β > β_*$ (arXiv 2606.05140). What is the counterpart of
$β_*$ for SA, where attention is normalised? Method: stationary states of noisy SA solve $ρ ∝ (e^(β
⟨·,·⟩) ∗ ρ)^(κ/β)$. Expanded about the uniform measure, with $a = λ_0/λ_1$ and $x = λ_2/λ_1$, the
branch that leaves at $κ_c = β a$ obeys $(κ_c/κ − 1)/m_1^2 → d (a−1)/((d+2) a^2) ((d−1)(a−1) x/(1−x)
− (a+d))$ (derived here). The bend is measured on branches (`meanfield.branch`) on the circle and on
$S^2$, and its sign is looked at over $β$ and $d$. Verdict: refuted that a $β_*$ exists where the
branch leaves; the formula's bracket is negative for every $β$ and $d$ that were tried, and the
ratio of its two terms stays below $((d−1)/(d+1))^2$. A jump to states that this branch does not
reach is not ruled out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock.dynamics import Noisy, SelfAttention
from tokenflock.meanfield import branch
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import log_kernel_eigenvalue

SOURCE = "Question 1: the tricritical $β$ of SA"
CAPTION = (
    "See the bend of the ordered branch, $d(κ_c/κ)/d(m₁²)$ where it leaves, stay negative for"
    " softmax at every $β$: it leaves forwards, without a jump."
)
DERIVED = "derived here; question after arXiv 2606.05140"
BETAS = {2: (1.0, 4.0, 8.0), 3: (2.0,)}
MANY = (2, 3, 4, 8, 16, 64, 256)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    betas = BETAS if scale.name == "quick" else {2: (1.0, 2.0, 4.0, 8.0), 3: (1.0, 2.0, 4.0, 8.0)}
    rows = [(d, beta, *_measured(beta, d)) for d in betas for beta in betas[d]]
    d, beta, bend, lowest = map(list, zip(*rows))
    grid = np.geomspace(0.01, 1e4, scale.pick(quick=400, paper=4000))
    parts = {
        "branches": xr.Dataset(
            {"bend": ("case", bend), "lowest": ("case", lowest)},
            {"d": ("case", d), "beta": ("case", beta)},
        ),
        "formula": xr.Dataset(
            {
                "bend": (("d", "beta"), [softmax_bend(grid, each) for each in MANY]),
                "ratio": (("d", "beta"), [_ratio(grid, each) for each in MANY]),
            },
            {"d": list(MANY), "beta": grid},
        ),
    }
    followed = " and ".join(
        f"$d = {d}$, $β = {', '.join(f'{beta:g}' for beta in betas[d])}$" for d in betas
    )
    setting = f"SA with noise; branches: {followed}; formula: $d$ to 256"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _terms(beta: Any, d: int) -> tuple[Any, Any]:
    """(a, x) = (lambda_0/lambda_1, lambda_2/lambda_1)."""
    first = log_kernel_eigenvalue(1, beta, d)
    a = np.exp(log_kernel_eigenvalue(0, beta, d) - first)
    return a, np.exp(log_kernel_eigenvalue(2, beta, d) - first)


def softmax_bend(beta: Any, d: int) -> Any:
    """(kappa_c/kappa - 1)/m_1^2 as m_1 -> 0 for noisy SA."""
    a, x = _terms(beta, d)
    return d * (a - 1) / ((d + 2) * a**2) * ((d - 1) * (a - 1) * x / (1 - x) - (a + d))


def _ratio(beta: Any, d: int) -> Any:
    """The first term of the bracket over the second."""
    a, x = _terms(beta, d)
    return (d - 1) * (a - 1) * x / ((1 - x) * (a + d))


def _measured(beta: float, d: int) -> tuple[float, float]:
    """(bend at m_1 -> 0 by a line in m_1^2, least kappa/kappa_c of the branch)."""
    unit = beta * float(_terms(np.float64(beta), d)[0])
    states = branch(
        Noisy(SelfAttention(beta)),
        within=(0.97 * unit, 1.05 * unit),
        d=d,
        points=96 if d == 2 else 48,
        step=0.04,
        most=8,
    )
    m, kappa = states.order_parameter.values, states.kappa.values / unit
    small = (m > 0.005) & (m < 0.12)
    line = np.polyfit(m[small] ** 2, (1 / kappa[small] - 1) / m[small] ** 2, 1)
    return float(line[1]), float(kappa.min())


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    formula, branches = data["formula"].to_dataset(), data["branches"].to_dataset()
    figure, axes = panels(1, 2, size=(3.5, 2.8))
    with look(figure) as theme:
        for colour, d in zip(theme.palette, (2, 3, 8)):
            axes[0].semilogx(formula.beta, formula.bend.sel(d=d), color=colour, label=f"$d={d}$")
            here = branches.isel(case=np.flatnonzero(branches.d.values == d))
            axes[0].plot(here.beta, here.bend, "o", color=colour, markersize=5)
            axes[1].semilogx(formula.beta, formula.ratio.sel(d=d), color=colour, label=f"$d={d}$")
            axes[1].axhline(((d - 1) / (d + 1)) ** 2, color=colour, linestyle=":", linewidth=1)
        axes[0].axhline(0, color=theme.ink, linewidth=0.8)
        axes[0].set(xlabel=r"$\beta$", ylabel="bend of the branch", xlim=(0.1, 100))
        axes[0].set_title("SA: always forwards (dots: branches)")
        axes[0].legend(loc="lower right")
        axes[1].set(
            xlabel=r"$\beta$", ylabel="ratio of the two terms", xlim=(0.1, 1e4), ylim=(0, 1)
        )
        axes[1].set_title(r"Below $((d-1)/(d+1))^2$ (dotted)")
        axes[1].legend(loc="upper left")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    branches, formula = data["branches"].to_dataset(), data["formula"].to_dataset()
    measured = [_bend(branches.isel(case=k)) for k in range(branches.sizes["case"])]
    room = ((formula.d - 1) / (formula.d + 1)) ** 2 - formula.ratio
    return [
        *measured,
        Claim(
            "forwards",
            "no ordered state of noisy SA was found below $κ_c$ on the first eight points of its"
            " branches (least $κ/κ_c$)",
            DERIVED + "; verdict: refuted that SA jumps where order leaves the uniform measure",
            float(branches.lowest.min()),
            between(1 - 1e-9, 1 + 1e-9),
            note="states that these branches do not reach are not ruled out",
        ),
        Claim(
            "negative",
            "the bend of noisy SA is negative for all $β$ from 0.01 to $10⁴$ and $d = 2$ to"
            " 256 (greatest value)",
            DERIVED + "; verdict: supported, for every $β$ and $d$ tried",
            float(formula.bend.max()),
            at_most(-1e-7),
        ),
        Claim(
            "supremum",
            "the ratio of the two terms of the bend stays below $((d−1)/(d+1))² < 1$ (least room)",
            DERIVED + "; verdict: supported (numbers, no proof)",
            float(room.min()),
            at_least(-1e-9),
            note="the bound is approached as $β → ∞$",
        ),
        Claim(
            "attained",
            "and tends to it: ratio at $β = 10⁴$ over $((d−1)/(d+1))²$, circle",
            DERIVED,
            float(formula.ratio.sel(d=2).isel(beta=-1)) * 9,
            near_relative(1, 1e-3),
        ),
    ]


def _bend(case: xr.Dataset) -> Claim:
    d, beta = int(case.d), float(case.beta)
    return Claim(
        f"bend-{d}-{beta:g}",
        f"noisy SA, $d = {d}$, $β = {beta:g}$: $(κ_c/κ − 1)/m₁² → d(a−1)/((d+2)a²)"
        " ((d−1)(a−1)x/(1−x) − (a+d))$",
        DERIVED,
        float(case.bend),
        near_relative(float(softmax_bend(np.float64(beta), d)), 2e-4),
        note="$a = λ₀/λ₁$, $x = λ₂/λ₁$; a line in $m₁²$ through $m₁ < 0.12$",
    )

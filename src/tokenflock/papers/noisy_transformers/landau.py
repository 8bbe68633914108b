"""Next to $β_*$ the jump is Landau's: the first-order point lies at $3/4$ of the way to the fold.

On the circle, for $β$ slightly above $β_*$, $κ_c/κ − 1 = c_1 m^2 + c_2 m^4 + ...$ along the branch
with $c_1 > 0 > c_2$. The fold is then at $m^2 = −c_1/(2 c_2)$ and the first-order point, where the
area under the curve vanishes, at $m^2 = −3 c_1/(4 c_2)$: squares of the order parameters have the
ratio $3/2$, distances $κ_c/κ − 1$ the ratio $3/4$, whatever the interaction (derived here).
Branches are followed at four $β$, and the ratios extrapolated to $β_*$ by a cubic; the squares
of the jump, a line in $β − β_*$, vanish at $β_*$.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import branch
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import critical_noise, tricritical_beta

SOURCE = "arXiv 2604.16288: next to the tricritical $β$"
CAPTION = (
    "See the ratios of first-order point and fold tend to Landau's $3/4$ and $3/2$ (stars) at"
    " $β_*$, where the jump begins."
)
DERIVED = "derived here; cf. abstract of arXiv 2604.16288"
BETAS = (2.6, 2.8, 3.0, 3.2)
REMAINDER = "tolerance: remainder of the cubic for a power series that stays within"


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    rows = []
    for beta in BETAS:
        unit = float(critical_noise(beta, 2))
        states = branch(
            Noisy(Unnormalised(beta)),
            within=(0.94 * unit, 1.02 * unit),
            points=scale.pick(quick=64, paper=128),
            step=scale.pick(quick=0.1, paper=0.02),
        )
        rows.append(
            (
                float(states.fold[0]) / unit,
                float(states.fold_order_parameter[0]),
                float(states.transition[0]) / unit,
                float(states.transition_order_parameter[0]),
            )
        )
    names = ("fold", "fold_order", "first", "first_order")
    return xr.Dataset(
        {name: ("beta", list(column)) for name, column in zip(names, zip(*rows))},
        {"beta": list(BETAS)},
        {"setting": "USA with noise on the circle, $β = 2.6$, 2.8, 3, 3.2"},
    )


def _ratios(data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """(distances from kappa_c, squares of order parameters): first-order point over fold."""
    depth = (1 / data["first"] - 1) / (1 / data.fold - 1)
    return depth, (data.first_order / data.fold_order) ** 2


def _at_star(values: xr.DataArray) -> float:
    """The cubic through the values, at beta_*."""
    x = values.beta.values - float(tricritical_beta(2))
    return float(np.polyval(np.polyfit(x, values.values, 3), 0))


def _remainder(size: float) -> float:
    """Bound of the error of the cubic at beta_* for ratios within `size` of their limit.

    The product of the distances x from beta_*, times the fourth coefficient of a power series that
    stays within `size` up to the farthest one, size / max(x)^4 (Cauchy). No measured number enters.
    """
    x = np.array(BETAS) - float(tricritical_beta(2))
    return float(size * np.prod(x / x.max()))


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    star = float(tricritical_beta(2))
    with look(figure) as theme:
        for colour, values, limit, words in zip(
            (theme.palette[0], theme.palette[2]),
            _ratios(data),
            (0.75, 1.5),
            (r"$\kappa_c/\kappa-1$", "$m_1^2$"),
        ):
            axes[0].plot(data.beta, values, "o-", color=colour, markersize=4, label=words)
            axes[0].plot(star, limit, "*", color=colour, markersize=10, clip_on=False)
        axes[0].set(xlabel=r"$\beta$", xlim=(2.4, 3.3), ylabel="first-order point over fold")
        axes[0].set_title(r"Stars at $\beta_*$: $3/4$ and $3/2$")
        axes[0].legend(loc="center right")
        for colour, name, words in zip(
            theme.palette, ("fold_order", "first_order"), ("fold", "first-order point")
        ):
            axes[1].plot(data.beta, data[name] ** 2, "o-", color=colour, markersize=4, label=words)
        axes[1].axvline(star, color=theme.soft, linestyle=":", linewidth=1)
        axes[1].set(xlabel=r"$\beta$", ylabel="$m_1^2$", ylim=(0, None), xlim=(2.4, 3.3))
        axes[1].set_title(rf"The jump begins at $\beta_*={star:.3f}$")
        axes[1].legend(loc="lower right")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    depth, square = map(_at_star, _ratios(data))
    squares, beta = data.first_order.values**2, data.beta.values
    start, slope = np.polynomial.Polynomial.fit(squares, beta, 3).convert().coef[:2]
    other = np.polynomial.Polynomial.fit(squares[:3], beta[:3], 2)(0.0)
    return [
        Claim(
            "depth",
            "circle: as $β → β_*$ the first-order point lies at $3/4$ of the fold's"
            " distance from $κ_c$ (in $κ_c/κ − 1$; cubic through four $β$)",
            DERIVED,
            depth,
            near(0.75, _remainder(0.03)),
            note=f"{REMAINDER} 0.03 of the limit up to $β = {BETAS[-1]:g}$",
        ),
        Claim(
            "square",
            "circle: as $β → β_*$ the squares of the order parameters there have the ratio $3/2$"
            " (cubic through four $β$)",
            DERIVED,
            square,
            near(1.5, _remainder(0.004)),
            note=f"{REMAINDER} 0.004 of the limit up to $β = {BETAS[-1]:g}$",
        ),
        Claim(
            "begins",
            f"circle: the jump vanishes at $β_* = {float(tricritical_beta(2)):.4f}$ ($β$ as"
            " a cubic in the square of the jump, at 0)",
            "abstracts of arXiv 2604.16288 and 2606.05140 ($β_*$); jump derived here",
            float(start),
            near(tricritical_beta(2), 2 * abs(start - other)),
            error=float(abs(start - other)),
            note=f"$dβ/d(m₁²) = {slope:.3f}$ there; error: what a parabola of the three nearest"
            " $β$ says instead",
        ),
        Claim(
            "earlier",
            "the first-order point moves away from $κ_c$ as $β$ grows (greatest step of"
            " $κ/κ_c$ along $β$)",
            DERIVED,
            float(data["first"].diff("beta").max()),
            at_most(-1e-5),
        ),
    ]

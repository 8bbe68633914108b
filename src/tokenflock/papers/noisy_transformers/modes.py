"""States of two and three bumps leave at $β/I_k$, and are unstable as long as they are followed.

On the circle a ripple of degree $k$ begins to grow at $κ_k = β/I_k(β)$. The branches of $k = 2$ and
3 at $β = 4$ are followed to $2 κ_k$ with the eigenvalues of small changes at every point. They are
born unstable, since $κ_1 < κ_k$: the largest rate at birth is the largest growth rate of the lower
modes. With ever less noise $k$ bumps become $k$ clusters, whose largest eigenvalue without noise is
positive too.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import branch
from tokenflock.papers.noisy_transformers._curves import smooth
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import growth_rate, kernel_eigenvalue

SOURCE = "arXiv 2412.14813: further branches"
CAPTION = (
    "See states of two and three bumps grow out of the uniform one (left), and the largest "
    "rate of small changes stay above zero: they are unstable (right)."
)
BETA = 4.0
DEGREES = (2, 3)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {}
    for k in DEGREES:
        unit = BETA / float(kernel_eigenvalue(k, BETA, 2))
        states = branch(
            Noisy(Unnormalised(BETA)),
            within=(0.8 * unit, 2 * unit),
            start=k,
            points=scale.pick(quick=128, paper=192),
            step=scale.pick(quick=0.2, paper=0.05),
        )
        wave = np.cos(k * states.theta.values)
        height = (states.density * states.weight * wave).sum("theta")
        parts[f"degree{k}"] = xr.Dataset(
            {
                "kappa": ("point", states.kappa.values / unit),
                "order": ("point", states.order_parameter.values),
                "height": ("point", height.values),
                "rate": ("point", states.rate.values[:, 0]),
                "leaves": float(states.leaves),
            }
        )
    setting = f"USA with noise on the circle, $β = {BETA:g}$, $k = 2$ and 3, $κ$ up to $2 κ_k$"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    with look(figure) as theme:
        for colour, k in zip((theme.palette[0], theme.palette[2]), DEGREES):
            part = data[f"degree{k}"].to_dataset()
            kappa, height, rate = smooth(part.kappa, abs(part.height), part.rate)
            axes[0].plot(kappa, height, "--", color=colour, label=f"$k={k}$")
            axes[1].plot(kappa, rate, color=colour, label=f"$k={k}$")
        axes[0].set(
            xlabel=r"$\kappa/\kappa_k$", ylabel=r"$|\mathrm{E}\,\cos\,k\theta|$", ylim=(0, 1)
        )
        axes[0].set_title(rf"$k$ bumps, $\beta={BETA:g}$ (dashed: unstable)")
        axes[0].legend(loc="lower right")
        axes[1].axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        axes[1].set(xlabel=r"$\kappa/\kappa_k$", ylabel="largest rate of small changes")
        axes[1].set_title("The rate stays above zero")
        axes[1].legend(loc="upper right")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [claim for k in DEGREES for claim in _claims(data[f"degree{k}"].to_dataset(), k)]


def _claims(part: xr.Dataset, k: int) -> list[Claim]:
    unit = BETA / float(kernel_eigenvalue(k, BETA, 2))
    born = max(float(growth_rate(j, BETA, 2, "USA", unit)) for j in range(1, k))
    return [
        Claim(
            f"leaves-{k}",
            f"circle, $β = 4$: states of {k} bumps leave the uniform one at $κ_{k} = β/I_{k}(β)$",
            "arXiv 2412.14813 (branches of the uniform state)",
            float(part.leaves),
            near_relative(unit, 1e-9),
        ),
        Claim(
            f"born-{k}",
            f"there the largest rate is that of the lower ripples, $max_j<{k} j²(I_j/β − 1/κ_{k})$",
            "derived here",
            float(part.rate[0]),
            near_relative(born, 1e-6),
        ),
        Claim(
            f"unstable-{k}",
            f"{k} bumps are unstable from $κ_{k}$ to $2 κ_{k}$ (least of the largest rates)",
            "derived here (continuation)",
            float(part.rate.min()),
            at_least(1e-3),
        ),
        Claim(
            f"centred-{k}",
            f"their mean stays zero: greatest order parameter $m₁$ along the branch of $k = {k}$",
            "derived here (symmetry)",
            float(part.order.max()),
            at_most(1e-8),
        ),
    ]

"""At $β = 0$ a Poisson kernel on the circle stays a Poisson kernel.

The continuity equation at $β = 0$, where SA, USA and the Kuramoto model are one, is solved from the
Poisson kernel of order parameter $r = 0.3$ up to $t = 3$ by the spectral solver (384 nodes, so that
$r^k$ of the last mode is below $1e-11$). Order parameter, density and moments $∫ e^(ik θ)$ are
compared with $r(t) = r_0 / √(r_0^2 + (1 − r_0^2) e^(−t))$ and $r(t)^k$ of Ott and Antonsen. At $β =
1$ the same start leaves the family: there the second moment is no longer the square of the first.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.meanfield import PoissonKernel, evolve
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import poisson_density, poisson_order

SOURCE = "Ott and Antonsen 2008: $β = 0$"
CAPTION = (
    "See the moments of a Poisson kernel stay powers of the first one (dots on lines), and "
    "its density stay a Poisson kernel, at $β = 0$."
)
R0, T, POINTS = 0.3, 3.0, 384
LAWS = {
    "SA": SelfAttention(beta=0.0),
    "USA": Unnormalised(beta=0.0),
    "SA, β = 1": SelfAttention(beta=1.0),
}


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    frames = scale.pick(quick=31, paper=121)
    runs = [
        evolve(law, PoissonKernel(r=R0), t=T, frames=frames, points=POINTS) for law in LAWS.values()
    ]
    moments = [
        [(run.density * run.weight * np.cos(k * run.theta)).sum("theta") for k in (1, 2, 3)]
        for run in runs
    ]
    return xr.Dataset(
        {
            "density": (("law", "time", "theta"), np.stack([run.density for run in runs])),
            "moment": (("law", "k", "time"), np.array(moments)),
            "mass": (("law", "time"), np.stack([run.mass for run in runs])),
        },
        coords={
            "law": list(LAWS),
            "k": [1, 2, 3],
            "time": runs[0].time.values,
            "theta": runs[0].theta.values,
        },
        attrs={"setting": f"$r(0) = {R0}$, $t$ up to {T:g}, {POINTS} nodes"},
    )


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.8, 2.8))
    r = poisson_order(data.time.values, R0)
    with look(left) as theme:
        for colour, mark, k in zip(theme.palette, "os^", data.k.values):
            left.plot(data.time, r**k, color=colour, linewidth=1)
            left.plot(
                data.time[::3],
                data.moment.sel(law="SA", k=k)[::3],
                mark,
                color=colour,
                markersize=4,
                label=f"$k={k}$",
            )
        left.set(
            xlabel=r"time $t$", ylabel=r"$\int \cos k\theta\,d\mu$", xlim=(0, T), ylim=(0, 0.9)
        )
        left.legend(loc="upper left")
        left.set_title(r"$\beta=0$: moments (dots) and $r(t)^k$ (lines)")
    with look(right) as theme:
        theta = np.where(data.theta > np.pi, data.theta - 2 * np.pi, data.theta)
        order = np.argsort(theta)
        for colour, at in zip(
            (theme.palette[1], theme.palette[3], theme.palette[0]), (0, len(r) // 2, len(r) - 1)
        ):
            right.plot(
                theta[order],
                data.density.sel(law="SA")[at][order],
                color=colour,
                label=f"$t={float(data.time[at]):g}$",
            )
            right.plot(
                theta[order],
                poisson_density(theta[order], r[at]),
                ":",
                color=theme.ink,
                linewidth=1,
            )
        right.set(
            xlabel=r"angle $\theta$", ylabel=r"density $\rho$", xlim=(-np.pi, np.pi), ylim=(0, None)
        )
        right.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
        right.legend(loc="upper right")
        right.set_title("Density (dotted: Poisson kernel)")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    r = poisson_order(data.time.values, R0)
    exact = data.moment.sel(law=["SA", "USA"])
    kernel = poisson_density(data.theta.values, r[:, None])
    bent = data.moment.sel(law="SA, β = 1")
    setting = f"($β = 0$, $r(0) = {R0}$, $t ≤ {T:g}$)"
    return [
        Claim(
            "order",
            f"self-attention (SA) and unnormalised (USA) from a Poisson kernel {setting}:"
            f" the order parameter is $r(t) = r_0/√(r_0² + (1 − r_0²) e^{{−t}})$ (greatest"
            " difference)",
            SOURCE,
            float(abs(exact.sel(k=1) - r).max()),
            at_most(1e-8),
            note=f"$r({T:g}) = {float(exact.sel(law='SA', k=1)[-1]):.10f}$",
        ),
        Claim(
            "moments",
            f"the moments stay $r(t)^k$, $k = 2$ and 3 {setting} (greatest difference)",
            SOURCE,
            float(max(abs(exact.sel(k=k) - r**k).max() for k in (2, 3))),
            at_most(1e-8),
        ),
        Claim(
            "density",
            f"the density stays the Poisson kernel of $r(t)$ {setting} (greatest difference)",
            SOURCE,
            float(abs(data.density.sel(law=["SA", "USA"]) - kernel).max()),
            at_most(1e-8),
        ),
        Claim(
            "mass",
            "mass is kept (greatest difference from 1)",
            SOURCE,
            float(abs(data.mass - 1).max()),
            at_most(1e-13),
        ),
        Claim(
            "only-there",
            "at $β = 1$ (SA) the same start leaves the family: greatest $|∫cos 2θ dμ −"
            f" (∫cos θ dμ)²|$ for $t ≤ {T:g}$",
            SOURCE,
            float(abs(bent.sel(k=2) - bent.sel(k=1) ** 2).max()),
            at_least(1e-3),
        ),
        Claim(
            "slope",
            "$dr/dt = r(1 − r²)/2$ at $t = 0$, from the first frames of the solver",
            SOURCE,
            _slope(exact.sel(law="SA", k=1)),
            near(R0 * (1 - R0**2) / 2, 1e-6),
        ),
    ]


def _slope(r: xr.DataArray) -> float:
    """The derivative at the first frame, of order 6."""
    h = float(r.time[1] - r.time[0])
    return float(np.array([-147, 360, -450, 400, -225, 72, -10]) @ r.values[:7] / (60 * h))

"""At the same $κ$, $0.98 κ_c$, tokens are disordered on the way up and ordered on the way down.

On the circle at $β = 4$ the mean-field equation (`evolve`) runs for $t = 30$ at $κ / κ_c = 0.98$,
1.15, 0.98 and 0.88 in turn, each run beginning where the last ended, with a ripple of size $1e-2$
added so that instability can be seen. Going up, the uniform state must last at 0.98, since it is
stable to $κ_c$; going down, the ordered one must last there, since it is stable to the fold, and be
lost at 0.88. The film shows the density along the loop.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import branch, evolve
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Circle, Grid
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, between, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.theory import critical_noise, growth_rate

SOURCE = "Film of hysteresis"
CAPTION = (
    "See the tokens at $0.98 κ_c$ disordered on the way up (1) and ordered on the way down (3):"
    " the loop, and the density along its four stairs."
)
DERIVED = "abstract of arXiv 2606.05140 (discontinuous transition); loop derived here"
BETA, POINTS, WAIT = 4.0, 72, 30.0
SHARES = (0.98, 1.15, 0.98, 0.88)


class Again(Density):
    """A density that was reached, with a small ripple."""

    f: Array  # the density at the nodes
    ripple: float = 1e-2  # size of the ripple of degree 1

    def relative(self, grid: Grid) -> Array:
        before = Circle(2, len(self.f))
        modes = before.coefficients(np.asarray(self.f))
        values = before.functions(grid.nodes)[0] @ modes
        return np.maximum(values, 1e-12) + self.ripple * np.cos(grid.coordinate)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {"loop": _loop(BETA, np.array(SHARES), scale.pick(quick=1, paper=4))}
    unit = _unit()
    states = branch(Noisy(Unnormalised(BETA)), within=(0.9 * unit, 1.2 * unit), points=96)
    parts["branch"] = xr.Dataset(
        {
            "kappa": ("point", states.kappa.values / unit),
            "order": ("point", states.order_parameter.values),
            "fold": float(states.fold[0]) / unit,
        }
    )
    wait = parts["loop"].attrs["wait"]
    setting = f"circle, $β = {BETA:g}$; $t = {wait:g}$ at each $κ$, {POINTS} points"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _unit() -> float:
    """kappa_c."""
    return float(critical_noise(BETA, 2))


def _loop(beta: float, ways: Array, fine: int) -> xr.Dataset:
    """Order parameters at the end of each stair, and the density on the way (time)."""
    unit, f = float(critical_noise(beta, 2)), np.ones(POINTS)
    order, films = [], []
    for share in ways:
        run = evolve(
            Noisy(Unnormalised(beta), kappa=float(share) * unit),
            Again(f),
            t=WAIT * fine,
            frames=11,
            points=POINTS,
            rtol=1e-6,
            atol=1e-9,
        )
        f = run.density.values[-1]
        order.append(float(run.order_parameter[-1]))
        films.append(run.isel(time=slice(1, None)))
    density = np.concatenate([run.density.values for run in films])
    return xr.Dataset(
        {
            "order": ("stair", order),
            "density": (("time", "theta"), density),
            "order_parameter": (
                "time",
                np.concatenate([run.order_parameter.values for run in films]),
                {"long_name": "order parameter"},
            ),
            "free_energy": (
                "time",
                np.concatenate([run.free_energy.values for run in films]),
                {"long_name": "free energy"},
            ),
            "weight": films[0].weight,
        },
        {
            "kappa": ("stair", ways),
            "time": WAIT * fine / 10 * np.arange(1, len(density) + 1),
            "theta": films[0].theta,
        },
        {
            "title": f"USA with noise, β = {beta:g}, κ up and down",
            "beta": beta,
            "wait": WAIT * fine,
        },
    )


def films(data: xr.DataTree) -> dict[str, xr.Dataset]:
    """The run to film."""
    return {"loop": data["loop"].to_dataset().drop_dims("stair")}


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.4, 2.8))
    states, part = data["branch"].to_dataset(), data["loop"].to_dataset()
    for ax in axes[:1]:
        with look(ax) as theme:
            ax.plot(states.kappa, states.order, color=theme.faint, lw=3, label="all states")
            ax.plot(
                part.kappa, part.order, "o-", color=theme.palette[0], markersize=5, label="loop"
            )
            for k, place in enumerate(((-12, 6), (5, -12), (-12, 2), (5, 6))):
                ax.annotate(
                    str(k + 1), (part.kappa[k], part.order[k]), place, textcoords="offset points"
                )
            ax.set(xlabel=r"$\kappa/\kappa_c$", ylabel="order parameter", ylim=(-0.03, 0.95))
            ax.set_title(r"$\beta=4$: a loop between fold and $\kappa_c$")
            ax.legend(loc="center right")
    with look(axes[1]) as theme:
        shown = axes[1].pcolormesh(
            part.time,
            np.degrees(part.theta),
            part.density.T,
            cmap=theme.sequential,
            rasterized=True,
        )
        figure.colorbar(shown, ax=axes[1], label="density")
        axes[1].set(xlabel="time, four stairs", ylabel="angle (degrees)")
        axes[1].set_title("The density along the loop")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    loop, states = data["loop"].to_dataset(), data["branch"].to_dataset()
    up, top, down, lost = loop.order.values
    fold, wait = float(states.fold), float(loop.attrs["wait"])
    # a ripple of order 0.005 at the growth rate of the uniform state
    left = 0.005 * np.exp(float(growth_rate(1, BETA, 2, "USA", SHARES[0] * _unit())) * wait)
    return [
        Claim(
            "up",
            "circle, $β = 4$, a ripple at $0.98 κ_c$: the uniform state lasts, the ripple falls at"
            f" the rate $I_1(β)/β − 1/κ$ (order after $t = {wait:g}$)",
            DERIVED,
            float(up),
            near_relative(left, 0.05),
            note="the ripple begins with order 0.005; 5 % for terms that are not linear",
        ),
        Claim(
            "rises",
            "then at $1.15 κ_c$ order appears, that of the branch",
            DERIVED,
            float(top),
            near(_branch_at(states, 1.15), 2e-3),
            note="0.002 for the points between which the branch is a line",
        ),
        Claim(
            "down",
            "back at $0.98 κ_c$ it stays: the order of the upper branch",
            DERIVED,
            float(down),
            near(_branch_at(states, 0.98), 5e-3),
        ),
        Claim(
            "both",
            "so two states are seen at $0.98 κ_c$: difference of their orders, that of the upper"
            " branch and the uniform state",
            DERIVED,
            float(down - up),
            near(_branch_at(states, 0.98) - left, 5e-3),
        ),
        Claim(
            "falls",
            f"below the fold at ${fold:.4f} κ_c$ order is lost (at $0.88 κ_c$ after $t ="
            f" {wait:g}$: less than the ripple)",
            DERIVED,
            float(lost),
            between(0, 0.005),
        ),
    ]


def _branch_at(part: xr.Dataset, kappa: float) -> float:
    """The upper order parameter of the branch at a kappa."""
    turn = int(np.argmin(part.kappa.values))
    return float(np.interp(kappa, part.kappa[turn:], part.order[turn:]))

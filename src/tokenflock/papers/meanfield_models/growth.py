"""Ripples of the uniform measure grow at the rates of the linear theory.

The uniform measure with a ripple of degree $k = 1$ to 4 and size $±1e-5$ is followed by the
spectral solver of the continuity equation, for as long as the fastest of them takes to grow e-fold:
SA, USA, Sinkhorn attention, and USA with noise ($κ = 3$), on the circle and on $S^2$ at $β = 4$, on
$S^7$ at $β = 9$ (measures symmetric about an axis). The difference of the two runs is free of what
is quadratic in the size; its growth is compared with the rate $k(k+d−2) λ_k / β$ and its variants.
The $β$ at which the fastest degree changes from 2 to 3 is checked by the rates of both there.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import Noisy, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.meanfield import Ripple, evolve, grid
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import growth_rate, mode_switch

SOURCE = "arXiv 2410.23228: growth of modes"
CAPTION = (
    "See measured growth rates of ripples of degree $k$ of the uniform measure (marks) on the"
    " linear theory (lines)."
)
SIZE, KAPPA = 1e-5, 3.0
PLACES = ((2, 4.0), (3, 4.0), (8, 9.0))  # d, beta
LAWS = ("SA", "USA", "Sinkhorn", "USA with noise")
DEGREES = (1, 2, 3, 4)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    points = scale.pick(quick={2: 96, 3: 48, 8: 48}, paper={2: 192, 3: 96, 8: 96})  # nodes, by d
    times = [
        [1 / float(abs(_expected(name, d, beta)).max()) for d, beta in PLACES] for name in LAWS
    ]
    rates = [
        [
            [_rate(_law(name, beta), k, d, t, points[d]) for k in DEGREES]
            for (d, beta), t in zip(PLACES, row)
        ]
        for name, row in zip(LAWS, times)
    ]
    switches = {d: float(mode_switch(2, d)) for d in (2, 3)}
    tied = [
        [_rate(SelfAttention(beta), k, d, 1.0, points[d]) for k in (2, 3)]
        for d, beta in switches.items()
    ]
    return xr.Dataset(
        {
            "rate": (("law", "place", "k"), rates),
            "time": (("law", "place"), times),
            "tied": (
                ("switch", "pair"),
                tied,
                {"long_name": "rates of degrees 2 and 3 where they should be equal"},
            ),
        },
        coords={
            "law": list(LAWS),
            "k": list(DEGREES),
            "d": ("place", [d for d, _ in PLACES]),
            "beta": ("place", [beta for _, beta in PLACES]),
            "switch_d": ("switch", list(switches)),
            "switch_beta": ("switch", list(switches.values())),
        },
        attrs={
            "setting": (
                f"$d = 2$ and 3 at $β = 4$, $d = 8$ at $β = 9$; $k = 1$ to 4; $κ = {KAPPA:g}$ for"
                " noise"
            )
        },
    )


def _law(name: str, beta: float) -> Dynamics:
    plain = {"SA": SelfAttention, "USA": Unnormalised, "Sinkhorn": Sinkhorn}
    return plain[name](beta=beta) if name in plain else Noisy(Unnormalised(beta=beta), kappa=KAPPA)


def _rate(law: Dynamics, k: int, d: int, t: float, points: int) -> float:
    """The rate at which mode k has grown up to time t."""
    mode = Ripple(k=k, amplitude=1.0).relative(grid(d, points)) - 1
    options = {"t": t, "frames": 2, "d": d, "points": points, "atol": 1e-13 if law.noisy else 1e-14}
    runs = [evolve(law, Ripple(k=k, amplitude=sign * SIZE), **options) for sign in (1, -1)]
    up, down = (run.density.values @ (run.weight.values * mode) for run in runs)
    return float(np.log((up[-1] - down[-1]) / (up[0] - down[0])) / t)


def _expected(law: str, d: int, beta: float) -> np.ndarray:
    """The rates of the linear theory for each degree."""
    return growth_rate(
        DEGREES, beta, d, law.split()[0], KAPPA if law == "USA with noise" else np.inf
    )


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, axes = panels(2, len(data.place), size=(2.7, 2.1), sharex=True)
    for number, ax in enumerate(axes):
        row, place = divmod(number, len(data.place))
        with look(ax) as theme:
            ax.axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
            for colour, mark, law in list(
                zip(theme.palette, "os^D", ("SA", "Sinkhorn", "USA", "USA with noise"))
            )[2 * row :][:2]:
                theory = _expected(law, int(data.d[place]), float(data.beta[place]))
                ax.plot(data.k, theory, color=colour, linewidth=1)
                ax.plot(
                    data.k,
                    data.rate.sel(law=law).isel(place=place),
                    mark,
                    color=colour,
                    markersize=5,
                    label=law,
                )
            ax.set_xticks(data.k.values)
            if row:
                ax.set_xlabel("degree $k$")
            else:
                ax.set_ylim(0, 0.8)
                ax.set_title(rf"$d={int(data.d[place])}$, $\beta={float(data.beta[place]):g}$")
            if not place:
                ax.set_ylabel("growth rate")
                ax.legend(loc="lower left" if row else "lower right", fontsize="small")
    figure.suptitle("Ripples of the uniform measure: solver (dots), linear theory (lines)")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    return [*(_growth_claim(data, law) for law in LAWS), *_switch_claims(data)]


def _growth_claim(data: xr.Dataset, law: str) -> Claim:
    modes = data.sel(law=law)
    rates = np.array([_expected(law, int(d), float(beta)) for d, beta in zip(data.d, data.beta)])
    off = np.expm1((modes.rate.values - rates) * modes.time.values[:, None])
    formula = {
        "SA": "$k(k+d−2) λ_k/(β λ_0)$",
        "USA": "$k(k+d−2) λ_k/β$",
        "Sinkhorn": "$k(k+d−2) r_k/(β(1 + r_k))$, $r_k = λ_k/λ_0$",
        "USA with noise": f"$k(k+d−2) (λ_k/β − 1/κ)$, $κ = {KAPPA:g}$",
    }[law]
    long = {
        "SA": "self-attention (SA)",
        "USA": "unnormalised self-attention (USA)",
        "Sinkhorn": "Sinkhorn attention",
    }
    source = {
        "SA": "derived; cf. arXiv 2410.23228",
        "Sinkhorn": "derived; cf. arXiv 2110.11773",
        "USA with noise": "derived; cf. arXiv 2510.20094",
    }.get(law, SOURCE)
    return Claim(
        law.lower().replace(" ", "-"),
        f"{long.get(law, law)}: a ripple of degree $k$ of the uniform measure grows at the"
        f" rate {formula} ($k = 1$ to 4; $d = 2$ and 3 at $β = 4$, $d = 8$ at $β = 9$):"
        " greatest relative error of the growth factor",
        source,
        float(abs(off).max()),
        at_most(1e-7),
        note="while the fastest grows e-fold; "
        + f"rates from ${rates.min():.4g}$ to ${rates.max():.4g}$".replace("-", "−"),
    )


def _switch_claims(data: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"switch-{int(d)}",
            f"at $β = {float(beta):.10g}$ ($d = {int(d)}$, SA) ripples of degrees 2 and 3"
            " grow equally fast: difference of rates",
            "derived; cf. arXiv 2410.23228",
            float(two - three),
            near(0, 1e-7),
            note=(
                f"both grow at ${float(two):.8f}$; the fastest degree is 2 just below this"
                " $β$, 3 just above"
            ),
        )
        for d, beta, (two, three) in zip(
            data.switch_d.values, data.switch_beta.values, data.tied.values
        )
    ]

"""Six places of the norm, one curve at six speeds.

Orthogonal tokens keep equal cosines $ρ(t)$ and equal radii $r(t)$ under every scheme, so that the
particle system is one ODE, $dρ/dt = (1/s) 2 e^(β ρ) (1 − ρ) ((n − 1) ρ + 1)/Z$, with a factor $s$
for each scheme (Post-LN 1, Pre-LN $r$, Mix-LN 1 then $r$, Peri-LN $r |A|$, nGPT $|A|/α$,
square-root scaling $√(t + 1)$). All tokens ($n = d = 64$, at paper scale 256; $β = 5$, $r_0 = 1$)
are followed by RK4 ($h = 0.05$, at paper scale 0.025; Mix-LN, which switches at $t = 2$, by
adaptive steps) and compared with that ODE; the initial speeds are measured on the laws at $n =
256$. nGPT has $α = 1$.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.papers.normalization._schemes import SCHEMES, SWITCH, followed, law_of
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_most, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Orthogonal
from tokenflock.theory import initial_speed, normalised_flow

SOURCE = "Figure: $ρ(t)$ for six schemes"
CAPTION = (
    "See the common cosine $ρ$ of tokens (left) reach one early under nGPT and Post-LN, and late"
    " under Pre-LN and Peri-LN, whose radii $r$ grow (right)."
)
BETA, N0 = 5.0, 256
TIMES = np.arange(0, 10.5, 0.5)
RADII = (0.5, 2.0)  # other r_0 for the initial speeds


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    n, h = scale.pick(quick=(64, 0.05), paper=(256, 0.025))
    runs = [followed(name, Orthogonal(n=n, d=n), BETA, TIMES, h) for name in SCHEMES]
    curves = xr.concat(runs, xr.IndexVariable("scheme", list(SCHEMES)))
    speeds = [[_speed(name, r0) for r0 in (1.0, *RADII)] for name in SCHEMES]
    speed = xr.Dataset(
        {"speed": (("scheme", "r0"), speeds)},
        coords={"scheme": list(SCHEMES), "r0": [1.0, *RADII]},
    )
    setting = f"$n = d = {n}$, $β = {BETA:g}$, orthogonal start, $r_0 = 1$; speeds at $n = {N0}$"
    parts = {"/": xr.Dataset(attrs={"setting": setting}), "curves": curves.assign(n=n)}
    return xr.DataTree.from_dict(parts | {"start": speed})


def _speed(scheme: str, r0: float) -> float:
    """drho/dt of orthogonal tokens of length r0 (of length one on the sphere)."""
    law = law_of(scheme, BETA)
    radius = r0 if scheme in ("pre", "peri") else 1.0
    with precision("float64"):
        x, w = radius * jnp.eye(N0), jnp.full(N0, 1 / N0)

        def cosine(x: jax.Array) -> jax.Array:
            return x[0] @ x[1] / (jnp.linalg.norm(x[0]) * jnp.linalg.norm(x[1]))

        velocity = law.velocity(jnp.asarray(0.0), x, w)
        return float(jax.jvp(cosine, (x,), (velocity,))[1])


def expected(curves: xr.Dataset, scheme: str):
    """The solution of the ODE, at the times of the curves."""
    n = int(curves.n)
    return normalised_flow(curves.time.values, n, BETA, scheme, switch=SWITCH)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    curves = data["curves"].to_dataset()
    figure, (left, right) = panels(1, 2, size=(3.9, 3.0))
    with look(left) as theme:
        for colour, (scheme, name) in zip(theme.palette, SCHEMES.items()):
            run, theory = curves.sel(scheme=scheme), expected(curves, scheme)
            left.plot(run.time, theory.rho, color=colour, linewidth=1.1)
            left.plot(run.time, 1 - run.gap, "o", color=colour, markersize=3, label=name)
        left.set(xlabel="depth $t$", ylabel=r"cosine $\rho$", ylim=(-0.03, 1.03))
        left.set_title(rf"$n={int(curves.n)}$, $\beta={BETA:g}$")
    with look(right) as theme:
        for colour, (scheme, name) in zip(theme.palette, SCHEMES.items()):
            run = curves.sel(scheme=scheme)
            right.plot(run.time, expected(curves, scheme).r, color=colour, label=name)
            right.plot(run.time, run.radius, "o", color=colour, markersize=3)
        right.set(xlabel="depth $t$", ylabel="radius $r$")
        right.legend(fontsize="small", loc="upper left")
        right.set_title("dots: tokens; lines: the ODE")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    curves, start = data["curves"].to_dataset(), data["start"].to_dataset()
    return [
        *(_curve_claim(curves, scheme) for scheme in SCHEMES),
        *_radius_claims(curves),
        *_speed_claims(start),
    ]


def _curve_claim(curves: xr.Dataset, scheme: str) -> Claim:
    run, theory = curves.sel(scheme=scheme), expected(curves, scheme)
    off = np.abs(1 - run.gap.values - theory.rho).max() + float(run.spread.max())
    return Claim(
        f"rho-{scheme}",
        f"under {SCHEMES[scheme]} orthogonal tokens keep one common cosine, that of the"
        f" equiangular ODE ($n = {int(curves.n)}$, $β = 5$, $t$ up to 10): greatest error",
        "the equiangular ODE of arXiv 2510.22026",
        float(off),
        at_most(1e-5),
        note=f"$ρ(5) = {float(np.interp(5.0, run.time, 1 - run.gap)):.6f}$",
    )


def _radius_claims(curves: xr.Dataset) -> list[Claim]:
    moving = ["pre", "mix", "peri"]
    off = [
        np.abs(curves.radius.sel(scheme=s).values / expected(curves, s).r - 1).max() for s in moving
    ]
    ends = curves.radius.sel(scheme=moving).isel(time=-1)
    fixed = curves.radius.sel(scheme=["post", "ngpt", "sqrt"])
    return [
        Claim(
            "radius-moving",
            "the radii of Pre-LN, Mix-LN and Peri-LN follow $ṙ = ⟨θ, A⟩$ (over $|A|$ for"
            " Peri-LN): greatest relative error",
            "the table of schemes of arXiv 2510.22026",
            float(np.max(off)),
            at_most(1e-5),
            note="$r(10)$: " + ", ".join(f"${float(value):.5f}$" for value in ends),
            erratum="the authors' simulator adds $Σ r A$ over coordinates to the radius of Pre-LN,"
            " not $⟨θ, A⟩$",
        ),
        Claim(
            "radius-fixed",
            "the radii of Post-LN, nGPT and square-root scaling stay 1 (greatest error)",
            "the table of schemes of arXiv 2510.22026",
            float(np.abs(fixed - 1).max()),
            at_most(1e-12),
        ),
    ]


def _speed_claims(start: xr.Dataset) -> list[Claim]:
    said = np.array(
        [[initial_speed(N0, BETA, s, r0=r0) for r0 in start.r0.values] for s in SCHEMES]
    )
    sphere = [s not in ("pre", "peri") for s in SCHEMES]
    said[sphere] = said[sphere][:, :1]
    off = np.abs(start.speed.values / said - 1)
    speed = start.speed.sel(r0=1.0)
    ratio = (np.exp(BETA) + N0 - 1) / np.sqrt(np.exp(2 * BETA) + N0 - 1)
    return [
        Claim(
            "speeds",
            "orthogonal tokens ($n = 256$, $β = 5$, $r₀ = 0.5$, 1, 2) start with the"
            " closed-form speeds of the six schemes: greatest relative error",
            "initial speeds of arXiv 2510.22026",
            float(off.max()),
            at_most(1e-10),
        ),
        Claim(
            "peri-first",
            f"Peri-LN starts $(e^β + n − 1)/√(e^(2β) + n − 1) = {ratio:.4f}$ times as fast"
            " as Pre-LN ($n = 256$, $β = 5$)",
            "initial speeds of arXiv 2510.22026",
            float(speed.sel(scheme="peri") / speed.sel(scheme="pre")),
            near_relative(ratio, 1e-10),
        ),
    ]

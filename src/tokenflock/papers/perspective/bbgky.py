"""The first steps of the BBGKY hierarchy on the circle.

Four tokens, uniform and independent on the circle, USA at $β = 1.5$. At $t = 0$ the speeds of $E
cos k(θ_2 − θ_1)$ are means of smooth functions over all angles: the trapezoidal rule with 32 angles
for each of the other tokens (32768 systems through the velocity of the law) is exact to rounding,
and these Fourier modes are compared with $g_β(x)/(π n)$. Then many systems from random angles are
followed by RK4 ($h = 0.02$): the law of one token must stay uniform, that of a pair must not.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.dynamics import Unnormalised
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_least, between, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import RK4
from tokenflock.theory import initial_correlation_speed, initial_pair_density_speed

SOURCE = "Section 8"
CAPTION = (
    "See the pair law leave the product of its marginals as the closed form says (left), "
    "and pairs gather while single tokens stay uniform (right)."
)
N, BETA = 4, 1.5
MODES = np.arange(1, 9)
BINS, H, STEPS = 40, 0.02, 50
LAW = Unnormalised(beta=BETA)
EQUAL = np.full(N, 1 / N)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    count = scale.pick(quick=40_000, paper=400_000)
    with precision("float64"):
        speeds, frames = (
            _mode_speeds(),
            _flow(np.random.default_rng(8).uniform(-np.pi, np.pi, (count, N))),
        )
    edges = np.linspace(-np.pi, np.pi, BINS + 1)
    cosine = np.cos(frames[:, :, 1] - frames[:, :, 0])
    slope = (-3 * cosine[0] + 4 * cosine[1] - cosine[2]) / (2 * H)  # of second order, at t = 0
    return xr.Dataset(
        {
            "speed": ("mode", speeds),
            "one": ("bin", np.histogram(_wrapped(frames[-1, :, 0]), edges)[0]),
            "pair": ("bin", np.histogram(_wrapped(frames[-1, :, 1] - frames[-1, :, 0]), edges)[0]),
            "slope": slope.mean(),
            "slope_error": slope.std(ddof=1) / np.sqrt(count),
        },
        coords={"mode": MODES, "bin": (edges[1:] + edges[:-1]) / 2},
        attrs={
            "setting": (
                f"$n = 4$, $β = 1.5$, USA; 32768 systems of a grid at $t = 0$; {count} random"
                " systems up to $t = 1$"
            )
        },
    )


def _on_circle(theta: Array) -> Array:
    return jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)


def _wrapped(angle: np.ndarray) -> np.ndarray:
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi


def _mode_speeds() -> np.ndarray:
    """d/dt E cos k(theta_2 - theta_1) at t = 0 for each mode k, by the trapezoidal rule (theta_1 =
    0 by symmetry).
    """
    grid = 2 * np.pi * np.arange(32) / 32
    others = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    theta = np.concatenate([np.zeros((len(others), 1)), others], axis=1)
    v = np.asarray(jax.jit(jax.vmap(lambda x: LAW.velocity(0.0, x, EQUAL)))(_on_circle(theta)))
    turning = v[..., 1] * np.cos(theta) - v[..., 0] * np.sin(theta)
    apart, closing = theta[:, 1] - theta[:, 0], turning[:, 1] - turning[:, 0]
    return np.array([(-k * np.sin(k * apart) * closing).mean() for k in MODES])


def _flow(theta: np.ndarray) -> np.ndarray:
    """Angles of many systems at t = 0, h, 2h and at the end, (4, systems, n)."""
    solver, no_noise = RK4(h=H), jax.random.key(0)

    def advance(x: Array, steps: int) -> Array:
        return jax.lax.fori_loop(
            0, steps, lambda _, y: solver.step(LAW, 0.0, y, EQUAL, no_noise), x
        )

    def frames(x: Array) -> Array:
        first = advance(x, 1)
        second = advance(first, 1)
        return jnp.stack([x, first, second, advance(second, STEPS - 2)])

    x = np.asarray(jax.jit(jax.vmap(frames))(_on_circle(theta)))
    return np.moveaxis(np.arctan2(x[..., 1], x[..., 0]), 0, 1)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.5, 2.7))
    x = np.linspace(-np.pi, np.pi, 400)
    with look(left) as theme:
        sums = (data.speed.values[:, None] * np.cos(np.outer(MODES, x[::16]))).sum(0) / np.pi
        left.axhline(0, color=theme.faint, linewidth=0.8)
        left.plot(
            x,
            initial_pair_density_speed(x, N, BETA),
            color=theme.soft,
            linewidth=1,
            label=r"$g_\beta(x)/(\pi n)$",
        )
        left.plot(
            x[::16],
            sums,
            "o",
            color=theme.palette[0],
            markersize=3.5,
            label="measured, 8 Fourier modes",
        )
        left.set(
            xlabel=r"$x=\theta_2-\theta_1$ (rad)",
            ylabel=r"$\partial_t\psi(0,x)$",
            ylim=(-0.16, 0.58),
        )
        left.legend(loc="upper right", fontsize=7.5)
        left.set_title(r"First motion of the pair law, $n=4$, $\beta=1.5$")
    with look(right) as theme:
        width = 2 * np.pi / BINS
        for colour, dash, name, label in (
            (theme.palette[0], "-", "pair", "pair"),
            (theme.palette[2], "--", "one", "one token"),
        ):
            density = data[name] / data[name].sum() / width
            right.step(data.bin, density, where="mid", color=colour, linestyle=dash, label=label)
        right.axhline(1 / (2 * np.pi), color=theme.faint, linewidth=0.8, zorder=0)
        right.set(
            xlabel=r"$\theta_2-\theta_1$, or $\theta_1$ (rad)", ylabel="density", ylim=(0, None)
        )
        right.legend(loc="upper right")
        right.set_title(r"Laws at $t=1$")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    exact = float(initial_correlation_speed(N, BETA))
    x = 2 * np.pi * np.arange(256) / 256
    modes = (
        (initial_pair_density_speed(x, N, BETA) * np.cos(np.outer(MODES, x))).mean(-1) * 2 * np.pi
    )
    return [
        Claim(
            "correlation",
            "$n = 4$ uniform tokens on the circle, USA at $β = 1.5$: $d/dt E cos(θ₂ − θ₁)$"
            " at $t = 0$ is $2 I₁(β)/(βn)$",
            "Section 8",
            float(data.speed.sel(mode=1)),
            near(exact, 1e-12),
            note="the other $n − 2$ tokens cancel in the mean",
        ),
        Claim(
            "pair-law",
            "$∂_t ψ(0, x) = g_β(x)/(πn)$, $ψ$ being the law of $θ₂ − θ₁$ (greatest"
            " difference of the first 8 Fourier modes)",
            "Section 8",
            float(np.abs(data.speed.values - modes).max()),
            between(0, 1e-12),
        ),
        Claim(
            "correlation-flow",
            "the same speed from random systems followed for two short steps (three-point slope)",
            "Section 8",
            float(data.slope),
            monte_carlo(exact, float(data.slope_error), slack=1e-3),
            error=float(data.slope_error),
            note="the slack is for the error of the three-point slope, of order $h²$",
        ),
        *_law_claims(data),
    ]


def _law_claims(data: xr.Dataset) -> list[Claim]:
    count = int(data.one.sum())
    fair = count / BINS
    chi = {name: float(((data[name] - fair) ** 2 / fair).sum()) for name in ("one", "pair")}
    spread = float(np.sqrt(2 * (BINS - 1)))
    return [
        Claim(
            "one-law",
            "the law of one token stays uniform ($χ²$ of its histogram at $t = 1$, 40 bins)",
            "Section 8",
            chi["one"],
            monte_carlo(BINS - 1, spread),
            error=spread,
            note=f"{count} systems",
        ),
        Claim(
            "pair-law-moves",
            "the law of a pair does not ($χ²$ of the histogram of $θ₂ − θ₁$ at $t = 1$,"
            " against 39 for the uniform law)",
            "Section 8",
            chi["pair"],
            at_least(0.05 * count),
            note=f"$χ²$ per system ${chi['pair'] / count:.3f}$, so that this is no matter of"
            " sampling",
        ),
    ]

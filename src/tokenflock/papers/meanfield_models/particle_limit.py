"""Tokens approach the solution of the continuity equation.

SA ($β = 2$) on the circle from a von Mises density: $n = 64$ to 1024 tokens are moved by `simulate`
(fast sums, adaptive solver) and compared at $t = 0$ and 1 with the spectral solution of the
continuity equation, by the Wasserstein distance $W_1$ on the circle (POT; the density as 16384
points). Tokens that start at the quantiles $(i − 1/2)/n$ remain quantiles of the moving measure up
to $O(1/n^2)$, so $W_1 = π / (2 n)$ at all times. Independent tokens start and stay $n^(−1/2)$ away.
Systems are filled up to 1024 tokens by copies of weight zero, which changes nothing.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.signal import resample

from tokenflock.dynamics import Fast, SelfAttention
from tokenflock.meanfield import VonMises, evolve, grid, wasserstein
from tokenflock.plots import cloud, look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, monte_carlo, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Given
from tokenflock.verbs.simulate import simulate

SOURCE = "cf. arXiv 2312.10794, Remark 3.3"
CAPTION = (
    "See the distance $W_1$ between $n$ tokens and the density shrink with $n$, and tokens (bars)"
    " lie on the density (line)."
)
BETA, START = 2.0, VonMises(kappa=1.5, mean=np.pi)
TIMES = (0.0, 1.0)
SIZES = (64, 128, 256, 512, 1024)
FINE = 16384


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    repeats = scale.pick(quick=36, paper=200)
    law = SelfAttention(beta=BETA)
    limit = evolve(law, START, times=TIMES, t=TIMES[-1], points=96)
    rng = np.random.default_rng(0)
    quantiles = [_distances(_run(n, (np.arange(n) + 0.5) / n), limit) for n in SIZES]
    independent = [
        [_distances(_run(n, rng.uniform(size=n)), limit, fine=4096) for _ in range(repeats)]
        for n in SIZES
    ]
    shown = _run(1024, (np.arange(1024) + 0.5) / 1024)
    return xr.Dataset(
        {
            "quantiles": (("n", "time"), quantiles),
            "independent": (("n", "repeat", "time"), independent),
            "density": limit.density,
            "weight": limit.weight,
            "x": (("time", "particle", "coord"), shown.x.values),
        },
        coords={"n": list(SIZES), "time": list(TIMES)},
        attrs={
            "setting": (
                f"SA, $β = {BETA:g}$, circle, $n = 64$ to 1024, $t = 0$ and 1; {repeats}"
                " independent samples for each $n$"
            )
        },
    )


def _run(n: int, u: np.ndarray) -> xr.Dataset:
    """Tokens that start where the measure has mass u before them."""
    space = grid(2, FINE)
    share = np.cumsum(START.on(space)) / FINE
    theta = np.interp(u, share, space.coordinate + np.pi / FINE)
    theta = np.concatenate([theta, np.full(SIZES[-1] - n, theta[0])])
    start = Given(
        np.stack([np.cos(theta), np.sin(theta)], axis=1), w=(np.arange(SIZES[-1]) < n).astype(float)
    )
    return simulate(Fast(SelfAttention(beta=BETA)), start, t=TIMES[-1], times=TIMES).isel(
        particle=slice(n)
    )


def _distances(run: xr.Dataset, limit: xr.Dataset, fine: int = FINE) -> list[float]:
    """W_1 at each time."""
    theta = 2 * np.pi * np.arange(fine) / fine
    points = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    masses = [
        np.maximum(np.asarray(resample(density, fine)), 0) for density in limit.density.values
    ]
    return [wasserstein(x, points, p=1, w_b=w) for x, w in zip(run.x.values, masses)]


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.8, 2.9))
    n = data.n.values
    with look(left) as theme:
        for colour, mark, time in zip(theme.palette, "os^", data.time.values):
            left.loglog(
                n,
                data.independent.sel(time=time).mean("repeat"),
                mark,
                color=colour,
                label=f"$t={time:g}$",
            )
            left.loglog(n, data.quantiles.sel(time=time), mark, color=colour, mfc=theme.paper)
        left.loglog(n, np.pi / (2 * n), color=theme.soft, linewidth=0.8)
        left.loglog(
            n,
            float(data.independent.isel(n=0).mean()) * np.sqrt(n[0] / n),
            color=theme.soft,
            linewidth=0.8,
            linestyle="--",
        )
        left.set(xlabel="number of tokens $n$", ylabel=r"$W_1(\mu_n(t),\,\mu(t))$")
        left.set_xticks(n, [str(count) for count in n])
        left.minorticks_off()
        left.legend(loc="lower left")
        left.set_title(
            "full: independent, $n^{-1/2}$ (dashed)\nopen: quantiles, $\\pi/(2n)$ (line)"
        )
    run = data[["x"]].assign(
        w=("particle", np.full(data.sizes["particle"], 1 / data.sizes["particle"]))
    )
    cloud(run, against=data[["density", "weight"]], ax=right, title=False)
    with look(right):
        right.set_title(rf"SA, $\beta={BETA:g}$, $t=1$: 1024 tokens from quantiles")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    n = data.n.values
    scaled = data.quantiles * data.n
    slope = np.polyfit(np.log(n), np.log(data.quantiles.sel(time=1.0)), 1)[0]
    power, error = _power(data.independent.sel(time=1.0))
    return [
        Claim(
            "quantiles",
            "self-attention (SA, $β = 2$) from the quantiles of a von Mises density: $n"
            " W_1(μ_n(1), μ(1)) = π/2$ at $n = 1024$",
            SOURCE,
            float(scaled.sel(n=1024, time=1.0)),
            near_relative(np.pi / 2, 0.01),
            note=f"at $t = 0$: ${float(scaled.sel(n=1024, time=0.0)):.4f}$",
        ),
        Claim(
            "quantiles-slope",
            "from quantiles $W_1(μ_n(1), μ(1))$ is of order $1/n$: slope in logarithms, $n"
            " = 64$ to 1024",
            SOURCE,
            float(slope),
            near(-1, 0.01),
        ),
        Claim(
            "independent-slope",
            "independent tokens are $n^{−1/2}$ away from the limit at $t = 1$: slope, $n ="
            " 64$ to 1024",
            SOURCE,
            power,
            monte_carlo(-0.5, error),
            error=error,
        ),
    ]


def _power(distance: xr.DataArray) -> tuple[float, float]:
    """Slope of the mean of log W_1 against log n, and its standard error."""
    log_n, logs = np.log(distance.n.values), np.log(distance.values)
    c = (log_n - log_n.mean()) / ((log_n - log_n.mean()) ** 2).sum()
    return float(c @ logs.mean(axis=1)), float(
        np.sqrt(c**2 @ (logs.var(axis=1, ddof=1) / logs.shape[1]))
    )

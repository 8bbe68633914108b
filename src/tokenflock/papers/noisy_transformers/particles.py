"""Thousands of tokens with noise sit on the curve of the mean-field equation.

$n$ tokens on the circle under USA with independent noise (`Noisy(Fast(Unnormalised))`,
Euler-Maruyama) from an ordered start, $β = 1$ ($κ = 1.3 κ_c$) and $β = 4$ ($κ = 1.05 κ_c$), and
from a uniform start below $κ_c$. The order parameter is averaged over late times in several
independent systems, which give its error, freed of the first order in $1/n$ and in the step by runs
of $n/4$ tokens and of twice the step, and compared with the stationary state of the mean-field
equation (`branch`). Below $κ_c$ the squared order parameter of $n$ tokens is $(1/n) (1 −
κ/κ_c)^(−1)$, the fluctuation of a stable mode (derived here).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Fast, Noisy, Unnormalised
from tokenflock.meanfield import branch
from tokenflock.observables import OrderParameter
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import EulerMaruyama
from tokenflock.starts import Uniform, VonMisesFisher
from tokenflock.theory import critical_noise

SOURCE = "arXiv 2412.14813, 2510.20094: particles"
CAPTION = (
    "See the order parameter (length of the mean token) of thousands of tokens with noise settle "
    "on that of the mean-field equation (straight line)."
)
CASES = {"slow": (1.0, 1.3, 0.02), "jump": (4.0, 1.05, 0.01)}  # beta, kappa / kappa_c, step
SYSTEMS = 8
QUIET = 0.5  # kappa / kappa_c of the disordered runs, beta = 1


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    sizes = scale.pick(quick=(2000,), paper=(1000, 10_000, 100_000))
    parts: dict[str, xr.Dataset] = {}
    for name, (beta, share, h) in CASES.items():
        unit = float(critical_noise(beta, 2))
        states = branch(Noisy(Unnormalised(beta)), within=(0.9 * unit, share * unit), points=96)
        runs = [_order(beta, share * unit, n, h, SYSTEMS, scale) for n in sizes]
        order, error = zip(
            *(_limit(run, beta, share * unit, n, h, scale) for run, n in zip(runs, sizes))
        )
        parts[name] = xr.Dataset(
            {
                "order": ("n", list(order)),
                "error": ("n", list(error)),
                "path": (("n", "time"), [run.values[0] for run in runs]),
                "state": float(states.order_parameter[-1]),
            },
            {"n": list(sizes), "time": runs[0].time.values},
        )
    parts["quiet"] = _quiet(scale.pick(quick=800, paper=2000))
    setting = (
        f"circle; {SYSTEMS} systems of {' and of '.join(map(str, sizes))} tokens at $β = 1$,"
        f" $κ = 1.3 κ_c$ and $β = 4$, $κ = 1.05 κ_c$; 64 tokens at $β = 1$, $κ = {QUIET} κ_c$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _order(beta: float, kappa: float, n: int, h: float, repeats: int, scale: Scale) -> xr.DataArray:
    """The order parameter in time (repeat, time)."""
    run = flock.ensemble(
        Noisy(Fast(Unnormalised(beta)), kappa=kappa),
        VonMisesFisher(n=n, d=2, kappa=2.0),
        repeats=repeats,
        seed=round(1 / h) + n,  # systems of their own for each step and size
        t=scale.pick(quick=16.0, paper=60.0),
        frames=101,
        solver=EulerMaruyama(h=h),
        observe=[OrderParameter()],
        keep=True,
        dtype="float32",
    )
    return run.order_parameter


def _late(order: xr.DataArray) -> tuple[float, float]:
    """(mean over the second half of time, its error from one system to the next)."""
    late = order.values[:, order.shape[1] // 2 :].mean(1)
    return float(late.mean()), float(late.std(ddof=1) / np.sqrt(len(late)))


def _limit(
    run: xr.DataArray, beta: float, kappa: float, n: int, h: float, scale: Scale
) -> tuple[float, float]:
    """(late order parameter without the first order in 1/n and in h, its error).

    Four times as many systems of n/4 tokens, by steps of h and of 2 h, tell both.
    """
    few, coarse = (
        _late(_order(beta, kappa, n // 4, step, 4 * SYSTEMS, scale)) for step in (h, 2 * h)
    )
    order, error = _late(run)
    limit = order + (order - few[0]) / 3 + (few[0] - coarse[0])
    return limit, float(np.sqrt((4 / 3 * error) ** 2 + (2 / 3 * few[1]) ** 2 + coarse[1] ** 2))


def _quiet(repeats: int) -> xr.Dataset:
    """n times the squared order parameter of disordered tokens."""
    n, unit = 64, float(critical_noise(1.0, 2))
    run = flock.ensemble(
        Noisy(Unnormalised(1.0), kappa=QUIET * unit),
        Uniform(n=n, d=2),
        repeats=repeats,
        t=8.0,
        frames=9,
        solver=EulerMaruyama(h=0.02),
        observe=[OrderParameter()],
        keep=True,
    )
    late = n * run.order_parameter.values[:, 4:] ** 2
    each = late.mean(1)
    return xr.Dataset(
        {"square": each.mean(), "error": each.std() / np.sqrt(repeats)}, attrs={"n": n}
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 2, size=(3.5, 2.7))
    for ax, name in zip(axes, CASES):
        part, (beta, share, _) = data[name].to_dataset(), CASES[name]
        with look(ax) as theme:
            for colour, n in zip((theme.palette[5], theme.palette[0], theme.palette[3]), part.n):
                ax.plot(part.time, part.path.sel(n=n), color=colour, lw=0.9, label=f"$n={int(n)}$")
            ax.axhline(float(part.state), color=theme.palette[2], lw=1.6, label="mean field")
            ax.set(xlabel="$t$", ylabel="order parameter", ylim=(0, 1), xlim=(0, None))
            ax.set_title(rf"$\beta={beta:g}$, $\kappa={share:g}\,\kappa_c$")
            ax.legend(loc="lower right", ncols=2)
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    said = [claim for name in CASES for claim in _cases(data[name].to_dataset(), name)]
    quiet = data["quiet"].to_dataset()
    n = int(quiet.attrs["n"])
    return [
        *said,
        Claim(
            "quiet",
            f"below $κ_c$ ($β = 1$, $κ = {QUIET} κ_c$) $n = {n}$ uniform tokens fluctuate"
            " with $n E m₁² = 1/(1 − κ/κ_c)$",
            "derived here (linear fluctuations about the uniform state)",
            float(quiet.square),
            monte_carlo(1 / (1 - QUIET), float(quiet.error), slack=0.1),
            error=float(quiet.error),
            note="slack 0.1 for terms of order $1/n$",
        ),
    ]


def _cases(part: xr.Dataset, name: str) -> list[Claim]:
    beta, share, h = CASES[name]
    return [
        Claim(
            f"{name}-{k}",
            f"{'many' if k else 'fewer'} tokens on the circle, $β = {beta:g}$, $κ ="
            f" {share:g} κ_c$: their order parameter, extrapolated in $1/n$ and in the step, is"
            " that of the stationary mean-field state",
            "arXiv 2412.14813 (mean-field limit); state by continuation",
            float(part.order[k]),
            monte_carlo(float(part.state), float(part.error[k])),
            error=float(part.error[k]),
            note=f"$n = {int(part.n[k])}$ and $n/4$, steps $h = {h}$ and $2h$; the error is that of"
            " the extrapolated mean, four of which are allowed",
        )
        for k in range(part.sizes["n"])
    ]

"""The kinetic example: five tokens on the circle, four merges, and a long wait before the last.

Five tokens on the circle start where the published code puts them, at $β = 4$. They follow SA, and
USA in the clock of the paper (weights $e^(β (⟨x, y⟩ − 1)) / n$, at most $1 / n$), until all have
met (cosine 0.999); tokens within $1e-9$ of each other are one heavy token. Four moments are kept: 1
meets 2, 4 meets 5, 3 meets 4, and the two clusters that are left meet. The same moments and
energies come from the equations of the five angles by another solver (DOP853, tolerance $1e-12$),
and that of the last merge from the closed form for two clusters of masses $2/5$ and $3/5$.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

from tokenflock import measure
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.observables import Convention, Energy
from tokenflock.papers.dynamic_metastability._moments import (
    angles_of,
    meeting_time,
    peak_time,
    until_met,
)
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import merging_time

SOURCE = "Kinetic example (published code)"
CAPTION = (
    "See five angles become two soon and one late, and the energy climb in steps at the four"
    " moments at which two tokens or clusters meet (vertical grey lines)."
)
BETA, DELTA, LENGTH, END = 4.0, 1e-3, 400.0, 1e5  # LENGTH: T of the published run
START = np.array(
    [
        [0.99806638, 0.06215705],
        [0.97712061, 0.21268594],
        [-0.24578194, 0.96932515],
        [-0.97354734, 0.2284854],
        [-0.99892629, -0.04632772],
    ]
)
PAIRS = {"1 and 2": (0, 1), "4 and 5": (3, 4), "3 and 4": (2, 3), "all": (1, 2)}
GIVEN = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0])  # times of the energies
LAWS = ("SA", "USA", "USA in the clock of arXiv 2312.10794")


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    frames = scale.pick(quick=15, paper=60)
    between_them = np.geomspace(0.3, 600, frames)
    times = np.unique(np.concatenate([[0.0], between_them, GIVEN, [END]]))
    met = [
        [meeting_time(_law(name), START, pair, END, DELTA) for pair in PAIRS.values()]
        for name in LAWS
    ]
    other = [_by_angles(name)[0] for name in LAWS[:2]]
    moments = xr.Dataset(
        {"met": (("law", "pair"), met), "by_angles": (("plain", "pair"), other)},
        coords={"law": list(LAWS), "plain": list(LAWS[:2]), "pair": list(PAIRS)},
    )
    runs = {
        name.lower(): _run(name, np.union1d(times, float(row[-1]) * np.array([0.9, 0.97, 0.995])))
        for name, row in zip(LAWS[:2], met)
    }
    setting = f"$n = 5$, $d = 2$, $β = {BETA:g}$; the angles of the published code"
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs={"setting": setting}), "moments": moments, **runs}
    )


def _law(name: str) -> Dynamics:
    clock = Clock.PAPER if name == LAWS[2] else Clock.PEAK
    return SelfAttention(beta=BETA) if name == "SA" else Unnormalised(beta=BETA, clock=clock)


def _run(name: str, times: np.ndarray) -> xr.Dataset:
    """Angles and energy up to the last merge, and the energies at given times by the other
    solver.
    """
    run = until_met(_law(name), START, PAIRS["all"], times, DELTA)
    energy = Energy(beta=BETA, convention=Convention.STAIRCASE)
    run = measure(run, [energy])
    end = float(run.time[-1])
    seen = np.array([time for time in GIVEN if time < end])
    return xr.Dataset(
        {
            "angle": (("time", "particle"), np.mod(angles_of(run.x.values), 2 * np.pi)),
            "energy": run.energy.variable,
            "heavy": run.heavy.variable,
            "energy_by_angles": ("given", _by_angles(name)[1][: len(seen)]),
        },
        coords={"time": run.time.values, "given": seen},
    )


def _by_angles(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(moments of the four meetings, energies at the given times) from the five angles alone."""

    def speed(t: float, angle: np.ndarray) -> np.ndarray:
        far = angle[:, None] - angle
        weight = np.exp(BETA * (np.cos(far) - 1))
        total = weight.sum(1) if name == "SA" else len(angle)
        return -(weight * np.sin(far)).sum(1) / total

    def meeting(pair: tuple[int, int]):
        return lambda t, angle: 1 - np.cos(angle[pair[0]] - angle[pair[1]]) - DELTA

    how = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 5.0}
    meetings = [meeting(pair) for pair in PAIRS.values()]
    path = solve_ivp(speed, (0, 700), angles_of(START), events=meetings, t_eval=GIVEN, **how)
    far = path.y.T[:, :, None] - path.y.T[:, None]
    energy = np.exp(BETA * (np.cos(far) - 1)).mean(axis=(1, 2))
    return np.array([times[0] for times in path.t_events]), energy


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(2, 2, size=(3.6, 2.3), sharex=True)
    for column, name in enumerate(LAWS[:2]):
        _draw(axes[column], axes[2 + column], data, name)
    return figure


def _draw(top: Axes, bottom: Axes, data: xr.DataTree, name: str) -> None:
    run, moments = data[name.lower()].to_dataset(), data["moments"].met.sel(law=name)
    time = run.time.where(run.time > 0, 0.1)
    with look(top) as theme:
        for k in range(5):
            top.plot(time, np.degrees(run.angle[:, k]), color=theme.palette[k], label=f"{k + 1}")
        bottom.plot(time, run.energy, color=theme.ink)
        bottom.axhline(13 / 25, color=theme.faint, linestyle="--", zorder=0)
        bottom.text(0.12, 13 / 25 + 0.02, "13/25", color=theme.soft)
        for ax in (top, bottom):
            for moment in moments.values:
                ax.axvline(moment, color=theme.faint, linewidth=0.8, zorder=0)
            ax.set(xscale="log", xlim=(0.1, 1e3))
        top.set(ylim=(-15, 330), yticks=[0, 90, 180, 270])
        top.set_title(f"{name}, " + rf"$\beta={BETA:g}$")
        bottom.set(ylim=(0.3, 1.05), xlabel="time")
        if name == "SA":
            top.set_ylabel("angle (degrees)")
            bottom.set_ylabel("energy (1 at consensus)")
            top.legend(
                title="token",
                fontsize="small",
                ncols=5,
                columnspacing=0.8,
                loc="upper left",
                frameon=True,
                framealpha=1,
                facecolor=theme.paper,
                edgecolor="none",
            )


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    moments = data["moments"].to_dataset()
    each = [_claims(data, moments, name) for name in LAWS[:2]]
    return [*_order_claims(moments), *each[0], *each[1]]


def _order_claims(moments: xr.Dataset) -> list[Claim]:
    sa, usa, paper = (moments.met.sel(law=name).values for name in LAWS)
    return [
        Claim(
            "order",
            "under SA and USA token 3 joins tokens 4 and 5 only after 1 and 2, and 4 and 5, have"
            " met (least ratio of the two moments)",
            SOURCE,
            float(min(times[2] / times[:2].max() for times in (sa, usa))),
            at_least(1.0),
            note="moments under SA: " + ", ".join(f"${time:.4g}$" for time in sa),
        ),
        Claim(
            "wait",
            "under SA the last merge comes more than fifty times later than the one before it",
            SOURCE,
            float(sa[3] / sa[2]),
            at_least(50.0),
        ),
        Claim(
            "within",
            f"under SA all tokens have met within the published run of $T = {LENGTH:g}$",
            SOURCE,
            float(sa[3]),
            at_most(LENGTH),
        ),
        Claim(
            "beyond",
            "under USA with weights $e^(β(⟨x,y⟩−1))/n$ they have not",
            SOURCE,
            float(usa[3]),
            at_least(LENGTH),
        ),
        Claim(
            "clock",
            "with weights $e^(β⟨x,y⟩)/n$ all moments of USA come $e^β = 54.598$ times"
            " sooner: greatest relative error of the four ratios",
            "the two clocks of USA, arXiv 2410.06833 and 2312.10794",
            float(np.abs(usa / paper / np.exp(BETA) - 1).max()),
            at_most(1e-7),
        ),
    ]


def _claims(data: xr.DataTree, moments: xr.Dataset, name: str) -> list[Claim]:
    run, tag = data[name.lower()].to_dataset(), name.lower()
    met = moments.met.sel(law=name).values
    other = moments.by_angles.sel(plain=name).values
    off = np.abs(run.energy.sel(time=run.given).values - run.energy_by_angles.values)
    late = float(run.time[run.heavy.values == 2][0])
    wide = float(abs(np.diff(run.angle.sel(time=late).values[1:3])[0]))
    if name == "SA":
        rest = float(merging_time(wide, BETA, DELTA, 0.4))
    else:
        rest = peak_time(wide, BETA, DELTA)
    return [
        Claim(
            f"moments-{tag}",
            f"the four moments of {name} are those of the equations of the five angles: greatest"
            " relative error",
            "(SA), (USA) on the circle",
            float(np.abs(met / other - 1).max()),
            at_most(1e-7),
        ),
        Claim(
            f"energies-{tag}",
            f"so are the energies $n⁻² Σ e^(β(⟨x_i,x_j⟩−1))$ of {name} at $t = 1$, 3, 10,"
            " 30, 100, 300 (those before the last merge): greatest error",
            "(SA), (USA) on the circle",
            float(off.max()),
            at_most(1e-8),
        ),
        Claim(
            f"last-{tag}",
            f"under {name} the last two clusters (masses $2/5$ and $3/5$) meet when the"
            f" closed form for two clusters says, from their angle at $t = {late:.4g}$",
            "derived here: two clusters are two heavy tokens"
            + ("" if name == "SA" else ", and under USA their masses drop out"),
            float(met[3]),
            near_relative(late + rest, 1e-6),
        ),
        Claim(
            f"plateau-{tag}",
            f"under {name} the energy waits at $13/25 = (2/5)² + (3/5)²$ for the last merge:"
            " what it has more at $t = 100$",
            SOURCE,
            float(run.energy.sel(time=100.0)) - 13 / 25,
            between(0.0, 2 * (6 / 25) * float(np.exp(-1.5 * BETA))),
            note="$2 (6/25) e^(−β(1−cos φ))$ at most, while the clusters are $120°$ apart or more",
        ),
        Claim(
            f"climb-{tag}",
            f"under {name} the energy never falls (least increment between frames)",
            "gradient flows, arXiv 2312.10794, Section 3",
            float(run.energy.diff("time").min()),
            at_least(0.0),
        ),
    ]

"""Random data: how long until consensus, over $β$, $n$ and $d$.

Pairs: two uniform tokens of SA on $S^(d−1)$ have met when their cosine is 0.999. The time is a
decreasing function of the cosine that they start with (`merging_time`), and the share of the sphere
that is farther than an angle is a cap, so that survival and mean time have closed forms. Near the
antipode the angle that is missing grows at the rate $r = 2/(1 + e^(2 β))$, so late survival falls
like $e^(−(d−1) r t)$. Many systems are run by RK4 ($h = 0.2$) up to $t = 300$.

Crowds: eight uniform tokens, the same. Their last two clusters have masses $m$ and $1 − m$, and the
rate $r(m)$ is least for equal masses.

Last merges: twelve uniform tokens on $S^2$ at $β = 9$, one by one, tokens within $1e-9$ as one:
from the masses and the angle of the last two clusters at any moment the closed form for two
clusters tells when they meet.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import ensemble, simulate
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.papers.dynamic_metastability._moments import RADIUS
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_most, between, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import cap_fraction, merging_time, polygon_lifetime, weighted_pair_speed

SOURCE = "Random data (open in the paper)"
CAPTION = (
    "See the share of systems without consensus fall in time: pairs (dots) on the closed form"
    " (lines), and eight tokens (dashed) that wait longer, on the circle most."
)
DELTA, END, N = 1e-3, 300.0, 8
BETAS, DIMENSIONS = (1.0, 2.0, 3.0), (2, 3, 8)
STEP = 0.2
LATE = 60.0  # of survival at beta = 2
SHAPE = 0.05  # share by which mean further times of the closed form may miss their limit
LAST_BETA, LAST_N = 9.0, 12


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    pairs, crowds, seeds = scale.pick(quick=(5000, 256, 4), paper=(16000, 4000, 64))
    met = [
        xr.Dataset(
            {
                "met": (
                    ("d", "beta", "repeat"),
                    [_times(n, d, betas, repeats, scale) for d in DIMENSIONS],
                )
            },
            coords={"beta": list(betas), "d": list(DIMENSIONS)},
        )
        for n, betas, repeats in ((2, BETAS, pairs), (N, BETAS, crowds))
    ]
    last = [_last(seed) for seed in range(seeds)]
    setting = (
        f"SA, $δ = {DELTA:g}$; pairs: {pairs} systems each, crowds: $n = {N}$, {crowds} systems"
        f" each, $β = 1$, 2, 3, $d = 2$, 3, 8; last merges: $n = {LAST_N}$, $d = 3$, $β = 9$,"
        f" {seeds} seeds"
    )
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs={"setting": setting}),
            "pairs": met[0],
            "crowds": met[1],
            "last": xr.Dataset(
                {"seen": ("seed", [a for a, _ in last]), "said": ("seed", [b for _, b in last])}
            ),
        }
    )


def _times(n: int, d: int, betas: tuple[float, ...], repeats: int, scale: Scale) -> np.ndarray:
    """(beta, repeat): when systems reached consensus, END where they have not."""
    result = ensemble(
        SelfAttention(),
        Uniform(n=n, d=d),
        over={"beta": list(betas)},
        repeats=repeats,
        t=END,
        frames=2,
        until=Consensus(delta=DELTA),
        observe=[],
        solver=RK4(h=STEP),
        seed=d,
        progress=scale.progress,
    )
    return np.nan_to_num(result.first_passage.values, nan=END).astype(np.float32)


def _last(seed: int) -> tuple[float, float]:
    """(when the last two clusters of a system met, when the closed form says so)."""
    law, start = SelfAttention(beta=LAST_BETA), Uniform(n=LAST_N, d=3)
    times = np.concatenate([[0.0], np.geomspace(10, 1e9, 25)])
    event = Consensus(delta=DELTA)
    run = simulate(law, start, times[-1], times=times, until=event, coalesce=RADIUS, seed=seed)
    two = np.flatnonzero(run.heavy.values[:-1] == 2)
    if not len(two):
        return np.nan, np.nan
    x = run.x.values[two[0]]
    other = x[np.argmin(x @ x[0])]
    mass = float((np.abs(x - x[0]).sum(1) < 1e-6).mean())
    angle = 2 * np.arcsin(np.linalg.norm(x[0] - other) / 2)
    rest = float(merging_time(angle, LAST_BETA, DELTA, mass))
    began = float(run.time[two[0]])
    return float(run.time[-1]) - began, rest


def _table(beta: float) -> tuple[np.ndarray, np.ndarray]:
    """(angles from near the antipode to where tokens have met, times that they take)."""
    widest = np.pi - np.arccos(1 - DELTA)
    missing = np.geomspace(1e-7, widest, 20001)  # from the antipode
    return np.pi - missing, np.asarray(merging_time(np.pi - missing, beta, DELTA))


def pair_survival(t: np.ndarray, beta: float, d: int) -> np.ndarray:
    """The share of uniform pairs that have not met by the times t."""
    angle, time = _table(beta)
    return 1 - cap_fraction(np.interp(t, time[::-1], angle[::-1]), d)


def pair_mean(beta: float, d: int) -> float:
    """The mean of min(T, END) for uniform pairs: the closed form averaged over the drawn angle."""
    angle, time = _table(beta)
    return float(-np.trapezoid(np.minimum(time, END), cap_fraction(angle, d)))


def pair_further(since: float, beta: float, d: int) -> float:
    """The mean of min(T, END) - since for the uniform pairs that have not met by `since`."""
    t = np.linspace(since, END, 4001)
    left = pair_survival(t, beta, d)
    return float(np.trapezoid(left, t) / left[0])


def _rate(beta: float, m: float) -> float:
    """At which two opposite clusters of masses m and 1 - m leave the antipode."""
    small = 1e-6
    return -float(weighted_pair_speed(np.pi - small, beta, m)) / small


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(3.0, 2.9), sharey=True)
    for ax, d in zip(axes, DIMENSIONS):
        _draw(ax, data, d)
    axes[0].set_ylabel("share without consensus")
    return figure


def _draw(ax: Axes, data: xr.DataTree, d: int) -> None:
    t = np.geomspace(1, END * 0.98, 40)
    with look(ax) as theme:
        for colour, beta in zip(theme.palette, BETAS):
            pairs = data["pairs"].met.sel(d=d, beta=beta).values
            ax.plot(t, pair_survival(t, beta, d), color=colour, linewidth=1)
            ax.plot(t, [(pairs > at).mean() for at in t], "o", color=colour, markersize=3)
            crowd = data["crowds"].met.sel(d=d, beta=beta).values
            ax.plot(t, [(crowd > at).mean() for at in t], "--", color=colour, linewidth=1.2)
            ax.plot([], [], color=colour, label=rf"$\beta={beta:g}$")
        if d == DIMENSIONS[-1]:
            ax.plot([], [], "o", color=theme.ink, markersize=3, label="two tokens")
            ax.plot([], [], "--", color=theme.ink, label="eight tokens")
            ax.legend(loc="upper right", fontsize="small")
        ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="time", title=f"$d={d}$")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    pairs, crowds = data["pairs"].to_dataset(), data["crowds"].to_dataset()
    return [
        *(_pair_claim(pairs, d) for d in DIMENSIONS),
        *(_mean_claim(pairs, d) for d in DIMENSIONS),
        *(_tail_claim(pairs.met.sel(d=d, beta=2.0).values, d, 2) for d in (2, 3)),
        *(_tail_claim(crowds.met.sel(d=d, beta=2.0).values, d, N) for d in (2, 3)),
        _last_claim(data["last"].to_dataset()),
    ]


def _pair_claim(pairs: xr.Dataset, d: int) -> Claim:
    """Kolmogorov's distance between times that were seen and the closed form."""
    far = []
    for beta in BETAS:
        met = np.sort(pairs.met.sel(d=d, beta=beta).values)
        count, seen = len(met), met[(met > 0) & (met < END)]
        if len(seen) == 0:
            return Claim(f"pairs-{d}", "pairs meet", SOURCE, np.nan, at_most(0))
        places = seen[:: max(len(seen) // 200, 1)]
        said = 1 - pair_survival(places, beta, d)
        below, upto = (
            np.searchsorted(met, places, side=side) / count for side in ("left", "right")
        )
        far.append(np.sqrt(count) * max(np.abs(said - below).max(), np.abs(upto - said).max()))
    return Claim(
        f"pairs-{d}",
        f"the times at which two uniform tokens meet ($d = {d}$; $β = 1$, 2, 3) have the law"
        " of the closed form: $√N$ times Kolmogorov's distance, the greatest",
        "derived here: `merging_time` of a uniform angle",
        float(np.max(far)),
        at_most(2.2),
        note="beyond 2.2 lies chance with probability $4e−4$ for three samples",
    )


def _mean_claim(pairs: xr.Dataset, d: int) -> Claim:
    met = pairs.met.sel(d=d, beta=2.0).values
    error = float(met.std(ddof=1) / np.sqrt(len(met)))
    return Claim(
        f"mean-{d}",
        f"two uniform tokens ($d = {d}$, $β = 2$) meet after the closed form, averaged over"
        " the drawn angle: mean time",
        "derived here: `merging_time` of a uniform angle",
        float(met.mean()),
        monte_carlo(pair_mean(2.0, d), error, slack=1e-3),
        error=error,
    )


def _tail_claim(met: np.ndarray, d: int, n: int) -> Claim:
    """The mean of T - s among systems that are left at s."""
    since = (LATE if n == 2 else LATE / 2) / (d - 1)
    left = met[met > since] - since
    mean = float(left.mean()) if len(left) > 1 else np.nan
    error = float(left.std(ddof=1) / np.sqrt(len(left))) if len(left) > 1 else np.nan
    slow = float(polygon_lifetime(2, 2.0)) / (d - 1)
    if n == 2:
        closed = pair_further(since, 2.0, d) / slow
        return Claim(
            f"tail-{d}",
            f"pairs that have not met by $t = {since:g}$ ($d = {d}$, $β = 2$) survive like"
            " $e^(−(d−1)rt)$, $r = 2/(1 + e^(2β))$: mean further time",
            "derived here: the antipode has codimension $d − 1$",
            mean,
            monte_carlo(slow, slow / np.sqrt(max(len(left), 1)), slack=SHAPE * slow),
            error=error,
            note=f"{len(left)} systems; slack {100 * SHAPE:g} % for the shape of the curve before"
            f" its end: the closed form has {closed:.3f} of $1/((d−1)r)$ here",
        )
    fast = 1 / ((d - 1) * _rate(2.0, 1 / n))
    spread = 4 / np.sqrt(max(len(left), 1))
    return Claim(
        f"crowd-{d}",
        f"systems of {n} uniform tokens that are left at $t = {since:g}$ ($d = {d}$, $β ="
        " 2$) last on between the times $1/((d−1)r(m))$ of their last two clusters, $m ="
        " 1/8$ and $1/2$: mean further time",
        "derived here: $r(m)$ is the rate of two opposite clusters of masses $m$ and $1 − m$",
        mean,
        between(fast * (1 - spread), slow * (1 + spread)),
        error=error,
        note=f"{len(left)} systems; from ${fast:.3g}$ to ${slow:.3g}$, and four standard errors",
    )


def _last_claim(last: xr.Dataset) -> Claim:
    off = np.abs(last.seen / last.said - 1).values
    known = off[~np.isnan(last.said.values)]
    enough = len(known) >= last.sizes["seed"] / 4
    return Claim(
        "last",
        f"the last two clusters of {LAST_N} uniform tokens on $S²$ at $β = 9$ meet when the"
        " closed form says, given their masses and angle: greatest relative error",
        "derived here: two clusters are two heavy tokens",
        float(known.max()) if enough else np.nan,
        at_most(1e-6),
        note=f"{len(known)} systems that wait with two clusters, for"
        f" ${float(last.seen.min()):.3g}$ to ${float(last.seen.max()):.3g}$",
    )

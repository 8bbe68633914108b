"""Two hundred tokens on the circle: who leads, who follows, and how long leaders hold.

Uniform tokens, $n = 200$, $d = 2$, $β = 64$, follow causal attention by RK4 ($h = 0.25$). Strong
centres are farther than $δ = 4 β^(−1/2) = 0.5$ from all earlier tokens. As long as no earlier token
has come closer than $c β^(−1/2)$ to a centre that had a gap of $c (1 + 2 ε) β^(−1/2)$, they pull
token $j$ by $h(c β^(−1/2))$ each at most, $h(x) = e^(β (cos x − 1)) sin x$; so it stays within $ε c
β^(−1/2)$ for $T_j = ε c β^(−1/2) / ((j − 1) h)$. That is checked for $c = 3$, $ε = 1/6$ (gap 0.5,
short times), and for $c = 6$, $ε = 1e-4$ and 24 tokens (long times). Snapshots at $t = 75$ and 150
show the clusters.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import simulate
from tokenflock.dynamics import Causal
from tokenflock.papers.causal._centres import centres, strong
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import attraction_range, strong_centres

SOURCE = "Figure 2"
LEMMA = "Lemma 5.1 of arXiv 2411.04990: strong centres are nearly fixed (a secondary source)"
CAPTION = (
    "See tokens gather around strong centres (full triangles), which stay where they were, while"
    " tokens at the other Rényi centres (open triangles) may move on."
)
N, BETA, END, STEP = 200, 64.0, 150.0, 0.25
FRAME = 2 * STEP  # between early frames
DELTA = 4 / np.sqrt(BETA)
SHORT, LONG = (3.0, 1 / 6), (6.0, 1e-4)  # c, eps
LONG_N = 24
GAP = 0.1  # between clusters, in radians


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    seeds, more = scale.pick(quick=(5, 4), paper=(64, 32))
    times = np.unique(np.concatenate([np.arange(0, 15.5, FRAME), [75.0, END]]))
    runs = [_run(N, times, seed) for seed in range(seeds)]
    limit = hold(2, *LONG)
    later = np.unique(np.floor(np.geomspace(10, limit, 120) / STEP) * STEP)
    long = [_run(LONG_N, np.append(0.0, later), seed) for seed in range(more)]
    setting = (
        f"$n = {N}$, $d = 2$, $β = {BETA:g}$, $δ = {DELTA:g}$, {seeds} seeds, $t$ up to {END:g};"
        f" long: $n = {LONG_N}$, $t$ up to {limit:.0f}, {more} seeds"
    )
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs={"setting": setting}),
            "runs": xr.concat(runs, "seed"),
            "long": xr.concat(long, "seed"),
        }
    )


def _run(n: int, times: np.ndarray, seed: int) -> xr.Dataset:
    law, start, solver = Causal(beta=BETA), Uniform(n=n, d=2), RK4(h=STEP)
    run = simulate(law, start, t=times[-1], times=times, solver=solver, seed=seed)
    place = np.arctan2(run.x.values[..., 1], run.x.values[..., 0])
    return xr.Dataset({"place": (("time", "token"), place)}, coords={"time": times})


def pull(x: float) -> float:
    """h(x) = e^(beta (cos x - 1)) sin x, falling beyond tau*."""
    return float(np.exp(BETA * (np.cos(x) - 1)) * np.sin(x))


def hold(j: int, c: float, eps: float) -> float:
    """T_j: how long token j (from 1) stays within eps c beta^(-1/2)."""
    width = c / np.sqrt(BETA)
    return eps * width / ((j - 1) * pull(width))


def _points(place: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(place), np.sin(place)], axis=-1)


def pulled(runs: xr.Dataset, c: float, eps: float) -> float:
    """Slope of the moves of centres up to T_j over the integrals of the pulls of earlier tokens."""
    gap, moves, pulls = c * (1 + 2 * eps) / np.sqrt(BETA), [], []
    for place in runs.place.values:
        for k in strong(_points(place[0]), gap)[1:]:
            until = runs.time.values <= hold(int(k) + 1, c, eps)
            angle = place[until, : k + 1] - place[until, k : k + 1]
            weight = np.exp(BETA * (np.cos(angle) - 1))
            speed = (weight * np.sin(angle)).sum(1) / weight.sum(1)
            pulls.append(np.trapezoid(speed, runs.time.values[until]))
            moves.append(np.angle(np.exp(1j * (place[until, k][-1] - place[0, k]))))
    return float(np.dot(moves, pulls) / np.dot(pulls, pulls)) if len(moves) else np.nan


def moved(runs: xr.Dataset, c: float, eps: float) -> tuple[float, int]:
    """(the greatest move of a centre up to its T_j as a share of eps c beta^(-1/2), how many
    centres).
    """
    gap, worst, count = c * (1 + 2 * eps) / np.sqrt(BETA), np.nan, 0
    for place in runs.place.values:
        x = _points(place[0])
        for k in strong(x, gap):
            if k == 0:
                continue
            until = runs.time.values <= hold(int(k) + 1, c, eps)
            if until.sum() < 2:  # no frame before T_j: nothing is seen
                continue
            way = np.abs(np.angle(np.exp(1j * (place[until, k] - place[0, k])))).max()
            worst, count = np.fmax(worst, way / (eps * c / np.sqrt(BETA))), count + 1
    return float(worst), count


def clusters(place: np.ndarray) -> int:
    """Groups of tokens with gaps of more than GAP between them."""
    ordered = np.sort(np.mod(place, 2 * np.pi))
    return int((np.diff(ordered, append=ordered[0] + 2 * np.pi) > GAP).sum())


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    runs = data["runs"].to_dataset().isel(seed=0)
    first = runs.place.values[0]
    who, all_centres = strong(_points(first), DELTA), centres(_points(first), DELTA)
    figure, axes = panels(1, 3, size=(2.7, 2.9))
    for ax, time in zip(axes, (0.0, 75.0, END)):
        place = runs.place.sel(time=time).values
        with look(ax) as theme:
            turn = np.linspace(0, 2 * np.pi, 200)
            ax.plot(np.cos(turn), np.sin(turn), color=theme.faint, linewidth=0.8, zorder=0)
            ax.plot(*_points(place).T, "o", color=theme.palette[0], markersize=3.5, alpha=0.6)
            ax.plot(*(1.13 * _points(first[who])).T, "v", color=theme.palette[2], markersize=5)
            others = np.setdiff1d(all_centres, who)
            ax.plot(
                *(1.13 * _points(first[others])).T,
                "v",
                color=theme.palette[2],
                markersize=5,
                fillstyle="none",
            )
            ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
            seen = f"{clusters(place)} clusters" if time else f"{len(place)} tokens"
            ax.set_title(f"$t={time:g}$: {seen}")
            for side in ax.spines.values():
                side.set_visible(False)
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    runs, long = data["runs"].to_dataset(), data["long"].to_dataset()
    return [*_hold_claims(runs, long), *_cluster_claims(runs)]


def _hold_claims(runs: xr.Dataset, long: xr.Dataset) -> list[Claim]:
    short_way, short_count = moved(runs, *SHORT)
    long_way, long_count = moved(long, *LONG)
    return [
        Claim(
            "hold",
            "strong centres with a gap of $4β^(−1/2)$ move by the pulls of earlier tokens up to"
            " $T_j = εcβ^(−1/2)/((j−1)h(cβ^(−1/2)))$, $c = 3$, $ε = 1/6$ (slope of moves over"
            " integrals of pulls, which the lemma bounds by $εcβ^(−1/2)$)",
            LEMMA,
            pulled(runs, *SHORT) if short_way <= 1 else np.nan,
            near(1.0, FRAME**2 / 12),
            note=f"{short_count} centres; the greatest move is {short_way:.2g} of the bound; $T_j ="
            f" {hold(2, *SHORT):.3g}/(j − 1)$; $c$ must exceed"
            f" $√β τ*_β = {np.sqrt(BETA) * float(attraction_range(BETA)):.4f}$; the trapezoidal"
            f" rule on frames $Δ = {FRAME:g}$ apart errs by $Δ²/12$ where a pull changes at rate 1",
        ),
        Claim(
            "hold-long",
            f"those of {LONG_N} tokens stay within $εcβ^(−1/2)$ with $c = 6$, $ε = 1e−4$ (greatest"
            " move as a share of that)",
            LEMMA,
            long_way,
            at_most(1.0),
            note=f"{long_count} centres; $T_j = {hold(2, *LONG):.3g}/(j − 1)$",
        ),
    ]


def _cluster_claims(runs: xr.Dataset) -> list[Claim]:
    first = [_points(place) for place in runs.place.values[:, 0]]
    who = [strong(x, DELTA) for x in first]
    every = [centres(x, DELTA) for x in first]
    late = [clusters(place) for place in runs.place.sel(time=75.0).values]
    end = [clusters(place) for place in runs.place.sel(time=END).values]
    count = np.array([len(k) for k in who])
    expected = float(strong_centres(DELTA, 2, N))
    error = float(count.std(ddof=1) / np.sqrt(len(count)))
    # number of strong centres: a sum of independent Bernoulli variables (1 - sigma)^(k-1)
    share = (1 - DELTA / np.pi) ** np.arange(N)
    spread = float(np.sqrt((share * (1 - share)).sum() / len(count)))
    return [
        Claim(
            "strong",
            f"there are $π/δ = {np.pi / DELTA:.3f}$ strong centres on average",
            "arXiv 2411.04990: $π/δ$ on the circle; its spread derived here",
            float(count.mean()),
            monte_carlo(expected, spread),
            error=error,
        ),
        Claim(
            "at-least",
            "at $t = 75$ there are as many clusters as strong centres or more (least"
            " difference over seeds)",
            "Figure 2; strong centres hold",
            float(np.min(np.array(late) - count)) if np.isfinite(runs.place).all() else np.nan,
            at_least(0.0),
            note=f"clusters: {late}, strong centres: {count.tolist()}",
        ),
        Claim(
            "at-most",
            "and no more than Rényi centres (greatest difference over seeds)",
            "Figure 2: tokens gather around centres; an observation",
            float(np.max(np.array(late) - [len(k) for k in every]))
            if np.isfinite(runs.place).all()
            else np.nan,
            at_most(0.0),
        ),
        Claim(
            "still",
            "and so at $t = 150$ (least difference of clusters and strong centres)",
            "Figure 2: metastable states",
            float(np.min(np.array(end) - count)) if np.isfinite(runs.place).all() else np.nan,
            at_least(0.0),
            note=f"clusters: {end}",
        ),
    ]

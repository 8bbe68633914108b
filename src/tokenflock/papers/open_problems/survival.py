"""Lifetimes of metastable states for random data: $e^(c β)$ with $c$ that grows with $n$, up to 64.

Question: how does the time to consensus of $n$ uniform tokens on $S^(d−1)$ grow with $β$, $n$ and
$d$? The paper on metastability, arXiv 2410.06833, leaves random data open. Method: for large $β$
only the closest pair of clusters moves (arXiv 2509.25040), so that a start tells its fate: closest
pair first. Clusters of masses $m$ and $m'$ then meet on the arc between them at the centre of
weights $m^2$ and $m'^2$ for SA, $m$ and $m'$ for USA (derived here), and the waiting times add up;
each is the closed form of two far clusters. (1) Systems of the flow, tokens within $1e-9$ as one,
against this fate. (2) The exponent $c(n, d)$, the mean of $1 − cos$ of the last angle, over many
starts, and how $2 − c$ falls with $n$. (3) The mean time is ruled by starts that end opposite: for
pairs it is $C_d e^(2β) β^(−(d−1)/2)$, $C_d = 2^((d−3)/2) Γ(d/2)/(2 √π (d−1))$ (derived here); is it
so for crowds? Verdict: supported that starts tell the lifetime and that the mean time of crowds has
the powers of pairs; refuted that the last pair forgets $n$, as it would if coarsening were
self-similar; undecided which exponent $2 − c$ has in $n$: USA, which keeps the mean of its tokens
to first order, falls towards $1/n$, SA more slowly.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import gamma

from tokenflock import simulate
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.events import Consensus
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import cap_fraction, pair_time

SOURCE = "Question 7: survival for random data"
CAPTION = (
    "See lifetimes of single systems on those told by their starts (left; line: equal), their"
    " exponent $c < 2$ grow with $n$ (middle; full and solid SA, open and dashed USA), and"
    " mean lifetimes of crowds (right; full dots) fall from $e^(2β)$ like $β^(−(d−1)/2)$, as those"
    " of pairs do (open dots; lines: theory for large $β$)."
)
OPEN = "open in arXiv 2410.06833"
POWERS = {"SA": 2, "USA": 1}  # of the masses, in the centre at which two clusters meet
DIMENSIONS = (2, 3, 8)
RUN_N, RUN_D, RUN_BETAS = 8, 3, (8.0, 24.0)
DELTA, RADIUS = 1e-3, 1e-9
FIT = 8  # tokens from which on exponents in n are fitted
MEAN_N, MEAN_D, MEAN_BETAS = 8, (2, 3), (16.0, 32.0, 64.0, 128.0)
GROUPS = 20
Merges = tuple[np.ndarray, np.ndarray, np.ndarray]  # angles, masses, other masses


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    systems, most, samples = scale.pick(quick=(6, 64, 4000), paper=(64, 256, 100_000))
    sizes = 2 ** np.arange(1, int(np.log2(most)) + 1)
    setting = (
        f"flow of SA and USA (peak clock): $n = {RUN_N}$, $d = {RUN_D}$, $β = 8$ and 24,"
        f" {systems} systems; closest pair first: $n = 2$ to {most}, $d = 2$, 3, 8, {samples}"
        " starts at $n = 8$, fewer beyond"
    )
    parts = {f"runs/{law}": _runs(law, systems) for law in POWERS}
    parts |= {f"exponents/{law}": _exponents(law, sizes, samples) for law in POWERS}
    parts["means"] = _means(5 * samples)
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def starts(n: int, d: int, count: int) -> np.ndarray:
    """Uniform tokens (count, n, d)."""
    x = np.random.default_rng([n, d]).normal(size=(count, n, d))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def closest_first(x: np.ndarray, power: int) -> Merges:
    """(angles, masses, other masses) of the merges of starts (count, n, d), each (count, n - 1).

    The closest pair becomes one, at the centre of weights m^power on the arc between them.
    """
    x, (count, n, _) = x.copy(), x.shape
    every, m = np.arange(count), np.full((count, n), 1 / n)
    G = x @ x.swapaxes(1, 2)
    G[:, np.arange(n), np.arange(n)] = -np.inf
    merges = []
    for _ in range(n - 1):
        i, j = np.divmod(G.reshape(count, -1).argmax(1), n)
        angle = np.arccos(np.clip(G[every, i, j], -1, 1))
        one, other = m[every, i], m[every, j]
        merges.append((angle, one, other))
        share = other**power / (one**power + other**power)
        place = np.sin((1 - share) * angle)[:, None] * x[every, i]
        place += np.sin(share * angle)[:, None] * x[every, j]
        x[every, i] = place / np.linalg.norm(place, axis=-1, keepdims=True)
        m[every, i], m[every, j] = one + other, 0.0
        cosines = np.where(m > 0, np.einsum("sk,sjk->sj", x[every, i], x), -np.inf)
        cosines[every, i] = -np.inf
        G[every, j] = G[every, :, j] = -np.inf
        G[every, i] = G[every, :, i] = cosines
    angles, ones, others = (np.stack(column, axis=-1) for column in zip(*merges))
    return angles, ones, others


def lifetime(law: str, merges: Merges, beta: float) -> np.ndarray:
    """The time to consensus that merges tell, (count,): far clusters, one pair after another
    (derived here).
    """
    angle, m, other = merges
    pull = other / m + m / other if law == "SA" else m + other
    alone = np.exp(beta) * pair_time(np.cos(angle), 1 - DELTA, beta, unnormalised=True)
    return (np.maximum(alone, 0) / pull).sum(-1)


def pair_constant(d: int) -> float:
    """C_d: the mean time of uniform pairs of SA is C_d e^(2 beta) beta^(-(d-1)/2) for large beta
    (derived here).
    """
    return float(2 ** ((d - 3) / 2) * gamma(d / 2) / (2 * np.sqrt(np.pi) * (d - 1)))


def _runs(law: str, systems: int) -> xr.Dataset:
    """log T of the flow and of the closest pair first, (beta, system)."""
    x = starts(RUN_N, RUN_D, systems)
    merges = closest_first(x, POWERS[law])
    seen = [[np.log(_time(law, beta, one)) for one in x] for beta in RUN_BETAS]
    said = [np.log(lifetime(law, merges, beta)) for beta in RUN_BETAS]
    dims = "beta", "system"
    return xr.Dataset({"seen": (dims, seen), "said": (dims, said)}, {"beta": list(RUN_BETAS)})


def _time(law: str, beta: float, x: np.ndarray) -> float:
    """When a system of the flow has reached consensus."""
    usa = Unnormalised(beta=beta, clock=Clock.PEAK)
    run = simulate(
        SelfAttention(beta=beta) if law == "SA" else usa,
        x,
        t=1e30,
        frames=2,
        until=Consensus(delta=DELTA),
        coalesce=RADIUS,
    )
    return float(run.time[-1])


def _exponents(law: str, sizes: np.ndarray, samples: int) -> xr.Dataset:
    """2 - c and its error, (d, n)."""
    rows = []
    for d in DIMENSIONS:
        for n in sizes:
            count = max(int(samples * min(1.0, (8 / n) ** 1.5)), 100)
            angle = closest_first(starts(int(n), d, count), POWERS[law])[0]
            missing = 1 + np.cos(angle.max(-1))
            rows.append((missing.mean(), missing.std(ddof=1) / np.sqrt(count)))
    table = np.reshape(rows, (len(DIMENSIONS), len(sizes), 2))
    dims = "d", "n"
    return xr.Dataset(
        {"missing": (dims, table[..., 0]), "error": (dims, table[..., 1])},
        {"d": list(DIMENSIONS), "n": sizes},
    )


def _means(samples: int) -> xr.Dataset:
    """Mean times of SA over e^(2 beta): of crowds in groups of starts, and of pairs."""
    crowds = {d: closest_first(starts(MEAN_N, d, samples), POWERS["SA"]) for d in MEAN_D}
    groups = [[_mean_groups(crowds[d], beta) for beta in MEAN_BETAS] for d in MEAN_D]
    pairs = [[_mean_of_pairs(d, beta) for beta in MEAN_BETAS] for d in MEAN_D]
    return xr.Dataset(
        {"crowd": (("d", "beta", "group"), groups), "pair": (("d", "beta"), pairs)},
        {"d": list(MEAN_D), "beta": list(MEAN_BETAS)},
    )


def _mean_of_pairs(d: int, beta: float) -> float:
    """The closed form averaged over the angle of two uniform tokens."""
    missing = np.geomspace(1e-7, np.pi - np.arccos(1 - DELTA), 20_001)
    half = np.full((len(missing), 1), 0.5)
    times = lifetime("SA", (np.pi - missing[:, None], half, half), beta) * np.exp(-2 * beta)
    return float(np.trapezoid(times, 1 - cap_fraction(np.pi - missing, d)))


def _mean_groups(merges: Merges, beta: float) -> np.ndarray:
    times = lifetime("SA", merges, beta) * np.exp(-2 * beta)
    return times[: len(times) // GROUPS * GROUPS].reshape(GROUPS, -1).mean(-1)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(3.0, 2.9))
    _draw_runs(axes[0], data)
    _draw_exponents(axes[1], data)
    _draw_means(axes[2], data["means"].to_dataset())
    return figure


def _draw_runs(ax: Axes, data: xr.DataTree) -> None:
    with look(ax) as theme:
        for colour, (law, mark) in zip(theme.palette, (("SA", "o"), ("USA", "s"))):
            part = data[f"runs/{law}"].to_dataset()
            for beta, fill in zip(RUN_BETAS, ("none", colour)):
                said, seen = (part[name].sel(beta=beta) / np.log(10) for name in ("said", "seen"))
                label = rf"{law}, $\beta={beta:g}$"
                style = {"markersize": 4, "markerfacecolor": fill, "label": label}
                ax.plot(said, seen, mark, color=colour, **style)
        ends = ax.get_xlim()
        ax.plot(ends, ends, color=theme.soft, linewidth=0.8, zorder=0)
        ax.set(xlabel=r"$\log_{10} T$ told by the start", ylabel=r"$\log_{10} T$ of the flow")
        ax.set_title(f"$n={RUN_N}$, $d={RUN_D}$")
        ax.legend(loc="upper left")


def _draw_exponents(ax: Axes, data: xr.DataTree) -> None:
    with look(ax) as theme:
        for colour, d in zip(theme.palette, DIMENSIONS):
            for law, line, fill in (("SA", "-", colour), ("USA", "--", "none")):
                part = data[f"exponents/{law}"].to_dataset().sel(d=d)
                ax.errorbar(
                    part.n,
                    part.missing,
                    2 * part.error,
                    fmt=f"o{line}",
                    color=colour,
                    markersize=3.5,
                    markerfacecolor=fill,
                    linewidth=1,
                    label=f"$d={d}$" if law == "SA" else None,
                )
        ax.plot([], [], "--", color=theme.ink, label="USA")
        ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="$2-c(n,d)$")
        _doubling(ax, part.n.values)
        ax.set_title(r"$T\approx e^{c\beta}$")
        ax.legend(loc="lower left")


def _draw_means(ax: Axes, means: xr.Dataset) -> None:
    beta = np.geomspace(MEAN_BETAS[0], MEAN_BETAS[-1], 20)
    with look(ax) as theme:
        for colour, d in zip(theme.palette, MEAN_D):
            here, style = means.sel(d=d), {"color": colour, "markersize": 4}
            crowd = here.crowd.mean("group")
            ax.plot(here.beta, crowd, "o", label=f"$n={MEAN_N}$, $d={d}$", **style)
            pairs = {"markerfacecolor": "none", "label": f"$n=2$, $d={d}$"}
            ax.plot(here.beta, here.pair, "o", **pairs, **style)
            line = pair_constant(d) * beta ** (-(d - 1) / 2)
            ax.plot(beta, line, color=colour, linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel=r"$\beta$")
        ax.set_ylabel(r"mean of $T\,e^{-2\beta}$ (SA)")
        ax.set_ylim(bottom=1.5e-4)
        _doubling(ax, np.array(MEAN_BETAS))
        ax.set_title("Mean over starts")
        ax.legend(loc="lower left")


def _doubling(ax: Axes, values: np.ndarray) -> None:
    """Ticks at numbers that double."""
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    means = data["means"].to_dataset()
    exponents = {law: data[f"exponents/{law}"].to_dataset() for law in POWERS}
    return [
        *(_run_claim(data[f"runs/{law}"].to_dataset(), law) for law in POWERS),
        *(_falls_claim(exponents[law], law, d) for law in POWERS for d in DIMENSIONS),
        *_compared_claims(exponents),
        *(_pair_claim(means, d) for d in MEAN_D),
        *(_mean_claim(means, d) for d in MEAN_D),
    ]


def _run_claim(part: xr.Dataset, law: str) -> Claim:
    off = abs(part.seen / part.said - 1)
    last = off.sel(beta=RUN_BETAS[-1])
    return Claim(
        f"told-{law.lower()}",
        f"{law}, $n = {RUN_N}$, $d = {RUN_D}$, $β = {RUN_BETAS[-1]:g}$: a start tells its"
        " lifetime, closest pair first ($log T$ against the told one, mean relative error)",
        OPEN + "; centres and times derived here; verdict: supported",
        float(last.mean()),
        at_most(1 / RUN_BETAS[-1]),
        note=f"at $β = {RUN_BETAS[0]:g}$ {float(off.sel(beta=RUN_BETAS[0]).mean()):.3f};"
        " beyond $1/β$ the exponent would be wrong",
    )


def slope(part: xr.Dataset, d: int) -> tuple[float, float]:
    """(slope of log(2 - c) over log n, its error), by weighted least squares."""
    here = part.sel(d=d, n=part.n >= FIT)
    x, y = np.log(here.n.values), np.log(here.missing.values)
    weight = (here.missing.values / here.error.values) ** 2
    centred = x - np.average(x, weights=weight)
    size = (weight * centred**2).sum()
    return float((weight * centred * y).sum() / size), float(size**-0.5)


def _falls_claim(part: xr.Dataset, law: str, d: int) -> Claim:
    value, error = slope(part, d)
    most = int(part.n[-1])
    return Claim(
        f"falls-{law.lower()}-{d}",
        f"{law}, $d = {d}$, closest pair first: with more tokens the last pair is closer to"
        f" opposite, $2 − c(n, d)$ falls with $n = {FIT}$ to {most} (slope in log-log; 0 if the"
        " last pair forgot $n$)",
        OPEN + "; verdict: refuted that the last pair forgets $n$",
        value,
        at_most(-4 * error),
        error=error,
        note=f"$c = {2 - float(part.missing.sel(d=d)[0]):.3f}$ for two tokens,"
        f" ${2 - float(part.missing.sel(d=d)[-1]):.3f}$ for {most}",
    )


def _compared_claims(exponents: dict[str, xr.Dataset]) -> list[Claim]:
    sa, usa, high = slope(exponents["SA"], 2), slope(exponents["USA"], 2), slope(exponents["SA"], 8)
    laws, sizes = float(np.hypot(sa[1], usa[1])), float(np.hypot(sa[1], high[1]))
    return [
        Claim(
            "centre",
            "SA, whose clusters meet at the centre of $m²$, forgets the mean of its start sooner"
            " than USA, which meets at that of $m$: slope of SA minus slope of USA, $d = 2$,"
            " closest pair first",
            OPEN + "; verdict: supported",
            sa[0] - usa[0],
            at_least(4 * laws),
            error=laws,
        ),
        Claim(
            "dimension",
            "and the fall is slower in higher dimension: slope of SA at $d = 8$ minus that at $d"
            " = 2$",
            OPEN + "; verdict: supported for the $n$ tried, undecided beyond",
            high[0] - sa[0],
            at_least(4 * sizes),
            error=sizes,
        ),
    ]


def _pair_claim(means: xr.Dataset, d: int) -> Claim:
    beta = MEAN_BETAS[-1]
    mean = float(means.pair.sel(d=d, beta=beta)) * beta ** ((d - 1) / 2)
    return Claim(
        f"pairs-{d}",
        f"two uniform tokens of SA, $d = {d}$, $β = {beta:g}$: mean of the closed form over $C_d"
        " e^(2β) β^(−(d−1)/2)$",
        "derived here",
        mean / pair_constant(d),
        near(1.0, d / beta),
        note=f"$C_{d} = {pair_constant(d):.4f}$; $d/β$ for terms of the next order",
    )


def _mean_claim(means: xr.Dataset, d: int) -> Claim:
    crowd = means.crowd.sel(d=d)
    slopes = np.polyfit(np.log(MEAN_BETAS[1:]), np.log(crowd.values[1:]), 1)[0]
    error = float(slopes.std(ddof=1) / np.sqrt(GROUPS))
    above = float(crowd.isel(beta=-1).mean() / means.pair.sel(d=d).isel(beta=-1))
    return Claim(
        f"mean-{d}",
        f"{MEAN_N} uniform tokens of SA, $d = {d}$: the mean of the times that starts tell has the"
        " powers of pairs, $e^(2β) β^(−(d−1)/2)$ (slope of the mean of $T e^(−2β)$ in log-log,"
        f" $β = {MEAN_BETAS[1]:g}$ to {MEAN_BETAS[-1]:g})",
        OPEN + "; verdict: supported",
        float(slopes.mean()),
        monte_carlo(-(d - 1) / 2, error, slack=0.05),
        error=error,
        note=f"{above:.2f} times the mean of pairs at $β = {MEAN_BETAS[-1]:g}$; 0.05 for the width"
        " of the last angle",
    )

"""Small $β$: consensus from almost every start.

At $β = 0$, $n = 20$ uniform tokens for $d = 2$, 3, 5 follow the flow (RK4, $h = 0.2$, float64)
until $t = 40$. At critical points of $E_0 = (1/n) Σ_ij ⟨x_i, x_j⟩$ other than consensus its Hessian
is twice the derivative of the library's velocity: it is taken for 60 tokens at random balanced
configurations (mean zero), at the axes and their opposites, and with all tokens at one pole but
one. Then the same 12 tokens in $d = 3$ run with $β = 0$ and $β = 0.1$, 0.01, 0.001 up to $t = 3$
(RK4, $h = 0.05$). Last, ensembles on the circle at $β = 1$, SA and USA, $n = 16$, $t = 300$ (RK4,
$h = 0.2$), in $d = 4$ at $β = 1/n$, $t = 60$, and with one pair of Gaussian matrices $Q$, $K$ at $β
= 0.2$, $n = 20$, $d = 3$, $t = 60$.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Attention, SelfAttention, Unnormalised
from tokenflock.observables import ConsensusDistance
from tokenflock.papers.perspective._pointwise import unit, velocity_jacobian
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_most, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

SOURCE = "Theorems 4.1, 4.2 and 4.3"
CAPTION = (
    "See every start collapse at $β = 0$, no critical point but consensus be stable, and tokens"
    " at small $β$ stay near those at $β = 0$."
)
N, DIMENSIONS, BETAS = 20, (2, 3, 5), (1e-1, 1e-2, 1e-3)
CONSENSUS = np.sqrt(2e-6)  # |x_i - x_j| at cosine 1 - 1e-6


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=(200, 64), paper=(2000, 500))
    balanced = scale.pick(quick=5, paper=50)
    parts = {
        "zero": _zero(repeats[0], scale),
        "saddles": _saddles(balanced),
        "perturbed": _perturbed(),
        "ends": _ends(repeats[1], scale),
    }
    setting = (
        f"$β = 0$: $n = {N}$, $d = 2$, 3, 5, {repeats[0]} starts each; $β = 1$: $n = 16$, $d ="
        f" 2$, {repeats[1]} starts, SA and USA"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _zero(repeats: int, scale: Scale) -> xr.Dataset:
    """Largest distance between two tokens, for every start and time, at beta = 0."""
    run = flock.ensemble(
        SelfAttention(beta=0.0),
        Uniform(n=N),
        over={"d": list(DIMENSIONS)},
        repeats=repeats,
        t=40.0,
        frames=41,
        solver=RK4(h=0.2),
        observe=[ConsensusDistance()],
        keep=True,
        dtype="float64",
        progress=scale.progress,
    )
    return run[["consensus_distance"]].drop_attrs()


def _saddles(count: int, n: int = 60) -> xr.Dataset:
    """Largest eigenvalue of the Hessian of E_0 at balanced tokens, random or on +- the axes, and
    with one token at a pole.
    """
    rng = np.random.default_rng(0)
    random = [[_top(_balanced(rng.normal(size=(n, d)))) for _ in range(count)] for d in DIMENSIONS]
    axes = [
        _top(np.repeat(np.vstack([np.eye(d), -np.eye(d)]), n // (2 * d), axis=0))
        for d in DIMENSIONS
    ]
    pole = [_top(np.eye(d)[[0] * n] * np.r_[-1, np.ones(n - 1)][:, None]) for d in DIMENSIONS]
    variables = {"random": (("d", "seed"), random), "axes": ("d", axes), "pole": ("d", pole)}
    return xr.Dataset(variables, coords={"d": list(DIMENSIONS)}, attrs={"n": n})


def _balanced(x: np.ndarray) -> np.ndarray:
    """Unit vectors with mean zero, by taking the mean away again and again."""
    for _ in range(200):
        x = unit(x)
        x = x - x.mean(axis=0)
    return unit(x)


def _top(x: np.ndarray) -> float:
    J = velocity_jacobian(Unnormalised(beta=0.0), x)
    # twice the symmetric derivative: the Hessian of E_0
    return float(np.linalg.eigvalsh(J + J.T)[-1])


def _perturbed() -> xr.Dataset:
    """sup over t <= 3 and tokens of |x^beta - x^0| for SA and USA, and the error as a function of
    time.
    """
    laws = {"SA": SelfAttention, "USA": Unnormalised}
    times = np.linspace(0, 3, 61)

    def path(law: type[SelfAttention | Unnormalised], beta: float) -> np.ndarray:
        return flock.simulate(
            law(beta=beta), Uniform(n=12, d=3), t=3.0, times=times, solver=RK4(h=0.05), seed=0
        ).x.values

    gaps = [
        [np.linalg.norm(path(law, b) - path(law, 0.0), axis=-1).max(axis=-1) for b in BETAS]
        for law in laws.values()
    ]
    return xr.Dataset(
        {"gap": (("law", "beta", "time"), gaps)},
        coords={"law": list(laws), "beta": list(BETAS), "time": times},
    )


def _ends(repeats: int, scale: Scale) -> xr.Dataset:
    """Largest distance between two tokens at the end: circle at beta = 1, d = 4 at beta = 1/n,
    random Q, K at small beta.
    """
    Q, K = np.random.default_rng(0).normal(size=(2, 3, 3))
    runs = {
        "SA": (SelfAttention(beta=1.0), Uniform(n=16, d=2), 300.0),
        "USA": (Unnormalised(beta=1.0), Uniform(n=16, d=2), 300.0),
        "SA, d = 4": (SelfAttention(beta=1 / 16), Uniform(n=16, d=4), 60.0),
        "USA, d = 4": (Unnormalised(beta=1 / 16), Uniform(n=16, d=4), 60.0),
        "Q, K": (Attention(beta=0.2, Q=Q, K=K), Uniform(n=N, d=3), 60.0),
    }
    rows = [
        flock.ensemble(
            law,
            start,
            repeats=repeats,
            t=t,
            frames=2,
            observe=[ConsensusDistance()],
            keep=True,
            dtype="float64",
            solver=RK4(h=0.2),
            progress=scale.progress,
        ).consensus_distance.values[:, -1]
        for law, start, t in runs.values()
    ]
    return xr.Dataset({"distance": (("law", "repeat"), rows)}, coords={"law": list(runs)})


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(3.2, 2.8))
    _draw_zero(axes[0], data["zero"].to_dataset())
    _draw_saddles(axes[1], data["saddles"].to_dataset())
    _draw_perturbed(axes[2], data["perturbed"].to_dataset())
    return figure


def _draw_zero(ax: Axes, zero: xr.Dataset) -> None:
    with look(ax) as theme:
        for colour, dash, d in zip(theme.palette, ("-", "--", ":"), zero.d.values):
            distances = np.maximum(zero.consensus_distance.sel(d=d), 1e-16)
            ax.plot(
                zero.time, distances.median("repeat"), dash, color=colour, label=f"$d={d}$, median"
            )
            ax.plot(zero.time, distances.max("repeat"), dash, color=colour, linewidth=0.7)
        ax.axhline(CONSENSUS, color=theme.faint, linewidth=0.8, zorder=0)
        ax.text(
            40, CONSENSUS * 1.5, r"cosine $1-10^{-6}$", ha="right", color=theme.soft, fontsize=8
        )
        ax.set(
            yscale="log",
            ylim=(1e-16, 8),
            xlim=(0, 40),
            xlabel="$t$",
            ylabel=r"$\max_{ij}|x_i-x_j|$",
        )
        ax.set_title(rf"$\beta=0$, $n={N}$ (thin: slowest of {zero.sizes['repeat']})")
        ax.legend(loc="lower left")


def _draw_saddles(ax: Axes, saddles: xr.Dataset) -> None:
    n = int(saddles.attrs["n"])
    with look(ax) as theme:
        d = np.linspace(1.7, 5.3, 50)
        ax.plot(d, 2 * (d - 1) / d, color=theme.ink, linewidth=1, label="$2(d-1)/d$")
        ax.plot(
            d, 2 * (d - 1) / (d * n), "--", color=theme.palette[2], label="printed, $2(d-1)/(dn)$"
        )
        for k in range(saddles.sizes["seed"]):
            ax.plot(
                saddles.d,
                saddles.random[:, k],
                "o",
                color=theme.palette[0],
                markersize=3,
                label="random balanced" if k == 0 else None,
            )
        ax.plot(
            saddles.d,
            saddles.axes,
            "D",
            color=theme.palette[1],
            markersize=4,
            label=r"tokens at $\pm e_k$",
        )
        ax.set(ylim=(0, 2.9), xticks=saddles.d.values, xlabel="$d$", ylabel="largest eigenvalue")
        ax.set_title(f"Hessian of $E_0$ at balanced tokens, $n={n}$")
        ax.legend(loc="upper left", ncols=2, columnspacing=1, handletextpad=0.5)


def _draw_perturbed(ax: Axes, perturbed: xr.Dataset) -> None:
    sup = perturbed.gap.max("time")
    with look(ax) as theme:
        for colour, mark, law in zip(theme.palette, "o^", perturbed.law.values):
            ax.plot(perturbed.beta, sup.sel(law=law), mark, color=colour, label=str(law))
            ax.plot(
                perturbed.beta,
                sup.sel(law=law)[-1] * perturbed.beta / BETAS[-1],
                color=colour,
                linewidth=0.8,
            )
        ax.set(
            xscale="log", yscale="log", xlabel=r"$\beta$", ylabel=r"$\sup_{t\leq3}|x^\beta-x^0|$"
        )
        ax.set_title(r"First order in $\beta$ (lines: slope 1)")
        ax.legend(loc="upper left")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    zero, saddles = data["zero"].to_dataset(), data["saddles"].to_dataset()
    perturbed, ends = data["perturbed"].to_dataset(), data["ends"].to_dataset()
    statements = [_consensus_at_zero(zero, int(d)) for d in zero.d.values]
    return [*statements, *_saddle_claims(saddles), *_first_order(perturbed), *_end_claims(ends)]


def _rule_of_three(count: int) -> str:
    return (
        f"if a share $p$ of starts failed, {count} successes would have probability below 5 %"
        f" for $p > {3 / count:.2g}$"
    )


def _consensus_at_zero(zero: xr.Dataset, d: int) -> Claim:
    last = zero.consensus_distance.sel(d=d).isel(time=-1)
    statement = (
        f"at $β = 0$, $n = {N}$ uniform tokens in $d = {d}$ meet: share of {len(last)}"
        " starts with all cosines above $1 − 1e-6$ at $t = 40$"
    )
    share = float((last < CONSENSUS).mean())
    note = f"largest distance left ${float(last.max()):.1e}$; {_rule_of_three(len(last))}"
    return Claim(f"zero-{d}", statement, "Theorem 4.1", share, between(1, 1), note=note)


def _saddle_claims(saddles: xr.Dataset) -> list[Claim]:
    bound, n = 2 * (saddles.d - 1) / saddles.d, int(saddles.attrs["n"])
    ratio = saddles.random / bound
    return [
        Claim(
            "saddles",
            "at tokens with mean zero the Hessian of $E_0 = (1/n) ΣΣ⟨x_i, x_j⟩$ has an"
            " eigenvalue of at least $2(d−1)/d$, so they are strict saddles ($d = 2$, 3, 5,"
            f" $n = {n}$): least ratio over {ratio.size} random configurations",
            "Theorem 4.1, Lemma A.2, (C.2)",
            float(ratio.min()),
            between(1 - 1e-9, 1.5),
            note=(
                "(C.2) prints $2(d−1)/(dn)$, true and loose by the factor $n$; ratios up to"
                f" ${float(ratio.max()):.3f}$"
            ),
        ),
        Claim(
            "saddles-sharp",
            "$2(d−1)/d$ is attained where the tokens sit at $±e_k$ ($d = 2$, 3, 5, $n ="
            f" {n}$): largest deviation of the ratio from 1",
            "Lemma A.2",
            float(np.abs(saddles.axes / bound - 1).max()),
            at_most(1e-9),
        ),
        Claim(
            "pole",
            "a critical point of the other kind, all $x_i = ±x_1$, is a strict saddle:"
            f" largest eigenvalue with one of {n} tokens opposite, which is 2",
            "Theorem 4.1, Lemma A.2",
            float(saddles.pole.min()),
            near(2, 1e-9),
        ),
    ]


def _first_order(perturbed: xr.Dataset) -> list[Claim]:
    sup = perturbed.gap.max("time")
    statements = []
    for law in perturbed.law.values:
        slope = np.polyfit(np.log(BETAS), np.log(sup.sel(law=law).values), 1)[0]
        growth = float(
            (perturbed.gap.sel(law=law) / perturbed.beta * np.exp(-3 * perturbed.time)).max()
        )
        statement = (
            f"sup over $t ≤ 3$ of $|x^β − x^0|$ is of first order in $β$ for {law} ($n ="
            " 12$, $d = 3$, $β = 0.1$, 0.01, 0.001): slope in log-log"
        )
        note = f"$|x^β − x^0| ≤ C β e^{{3t}}$ with $C = {growth:.3f}$ here"
        statements.append(
            Claim(
                f"first-order-{law.lower()}",
                statement,
                "Theorem 4.2",
                float(slope),
                near(1, 0.05),
                note=note,
            )
        )
    return statements


def _end_claims(ends: xr.Dataset) -> list[Claim]:
    said = {
        "SA": (
            "circle-sa",
            "$n = 16$ tokens on the circle meet under SA at $β = 1$",
            "Theorem 4.3 ($d = 2$, $β ≤ 1$)",
        ),
        "USA": (
            "circle-usa",
            "$n = 16$ tokens on the circle meet under USA at $β = 1$",
            "Theorem 4.3 ($d = 2$, $β ≤ 1$)",
        ),
        "SA, d = 4": (
            "higher-sa",
            "$n = 16$ tokens in $d = 4$ meet under SA at $β = 1/n$",
            "Theorem 4.3 (if $C ≥ 1$), Theorem 6.1",
        ),
        "USA, d = 4": (
            "higher-usa",
            "$n = 16$ tokens in $d = 4$ meet under USA at $β = 1/n$",
            "Theorem 4.3 (if $C ≥ 1$), Theorem 6.1",
        ),
        "Q, K": (
            "matrices",
            (
                f"$n = {N}$ tokens in $d = 3$ meet under one pair of matrices $Q$, $K$"
                " (standard Gaussian entries) with $V = I$ at $β = 0.2$"
            ),
            "Theorem 4.2 (any Q, K)",
        ),
    }
    statements = []
    for law, (name, statement, source) in said.items():
        last = ends.distance.sel(law=law)
        text = (
            f"{statement}: share of {len(last)} uniform starts by $t ="
            f" {300 if name.startswith('circle') else 60}$"
        )
        statements.append(
            Claim(
                name,
                text,
                source,
                float((last < CONSENSUS).mean()),
                between(1, 1),
                note=_rule_of_three(len(last)),
            )
        )
    return statements

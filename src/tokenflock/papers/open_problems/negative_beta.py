"""Between $−2/3$ and $−0.16$ regular polygons are unstable and every random start came to
consensus.

Question: on the circle USA synchronises from almost every start for $β ≥ −0.16$ and not for $β <
−2/3$ (arXiv 2507.22857). Are there stable states other than consensus in between? Method: (1) the
regular $n$-gon is stable where all eigenvalues of the law about it are negative (but for turning
all tokens at once); its threshold in $β$ is computed for odd $n$ (even ones contain antipodal
pairs). (2) $n = 3$, 5 tokens from random starts at $β = −0.6$, $−0.4$ and $−1$: share that has
reached consensus at the end. Verdict: undecided; no other stable state was found for $β > −2/3$,
and the triangle is the first polygon to become stable.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.dynamics import Unnormalised
from tokenflock.observables import ConsensusDistance
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_most, between, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

SOURCE = "Question 2: stable states for $−2/3 < β < −0.16$"
CAPTION = (
    "See regular polygons stable only below the open range of $β$ (shaded), and every random "
    "start within it reach consensus."
)
OPEN = "question left open between arXiv 2507.22857's $−0.16$ and $−2/3$"
ODD = (3, 5, 7, 9)
BETAS = (-1.0, -0.6, -0.4)
SIZES = (3, 5)
MET = 1e-3
CELLS = 96  # of each angle


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=2048, paper=20_000)
    with precision("float64"):
        thresholds = [_threshold(n) for n in ODD]
    share = []
    for n in SIZES:
        run = flock.ensemble(
            Unnormalised(),
            Uniform(n=n, d=2),
            over={"beta": list(BETAS)},
            repeats=repeats,
            t=100.0,
            frames=2,
            solver=RK4(h=0.25),
            observe=[ConsensusDistance()],
            keep=True,
            dtype="float64",
        )
        share.append((run.consensus_distance.values[..., -1] < MET).mean(-1))
    parts = {
        "polygons": xr.Dataset({"threshold": ("n", thresholds)}, {"n": list(ODD)}),
        "starts": xr.Dataset(
            {"share": (("n", "beta"), share)},
            {"n": list(SIZES), "beta": list(BETAS)},
            {"repeats": repeats},
        ),
        "basin": xr.Dataset({"share": basin(CELLS)}),
    }
    setting = (
        f"USA on the circle, $n = 3$, 5, $β = −1$, $−0.6$, $−0.4$, $t = 100$, {repeats} starts"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


@jax.jit
def _slopes(beta: Any, angles: jax.Array) -> jax.Array:
    """How the speeds of the angles change with the angles."""
    n = len(angles)

    def speeds(angles: jax.Array) -> jax.Array:
        x = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        along = jnp.stack([-x[:, 1], x[:, 0]], axis=1)
        velocity = Unnormalised(beta=beta).velocity(0.0, x, jnp.full(n, 1 / n))
        return jnp.sum(velocity * along, axis=1)

    return jax.jacfwd(speeds)(angles)


def _top(beta: float, n: int) -> float:
    """The largest eigenvalue of the law about the regular n-gon, but for turning all at once."""
    slopes = np.asarray(_slopes(jnp.asarray(beta), 2 * np.pi * jnp.arange(n) / n))
    away = 1e6 / n  # the zero of turning all is moved far below
    return float(np.linalg.eigvalsh((slopes + slopes.T) / 2 - away).max())


def _threshold(n: int) -> float:
    """The beta below which the regular n-gon is stable; NaN where there is none above -20."""
    low = -0.1
    while _top(low, n) > 0:
        low -= 0.1
        if low < -20:
            return float("nan")
    return cast(float, brentq(lambda beta: _top(beta, n), low, low + 0.1, xtol=1e-12))


def basin(points: int) -> float:
    """Share of starts of three tokens at beta = -1 that end in the triangle.

    Midpoints of a grid of the two angles between tokens, by the equations of the angles themselves
    (RK4, h = 0.25), not by the library's law.
    """
    side = 2 * np.pi * (np.arange(points) + 0.5) / points
    first, second = (each.ravel() for each in np.meshgrid(side, side))
    angles = np.stack([np.zeros_like(first), first, second])

    def speed(a: np.ndarray) -> np.ndarray:
        gap = a[None] - a[:, None]
        return (np.exp(-np.cos(gap)) * np.sin(gap)).mean(1)

    h = 0.25
    for _ in range(400):
        k1 = speed(angles)
        k2 = speed(angles + h / 2 * k1)
        k3 = speed(angles + h / 2 * k2)
        angles = angles + h / 6 * (k1 + 2 * k2 + 2 * k3 + speed(angles + h * k3))
    return float((np.abs(np.exp(1j * angles).mean(0)) < 0.5).mean())


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    polygons, starts = data["polygons"].to_dataset(), data["starts"].to_dataset()
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    with look(figure) as theme:
        axes[0].plot(polygons.n, polygons.threshold, "o", color=theme.palette[0])
        axes[0].axhspan(-2 / 3, -0.16, color=theme.palette[1], alpha=0.25, lw=0)
        axes[0].text(5, -0.48, "open", color=theme.soft)
        axes[0].set(xlabel="$n$", ylabel=r"stable below $\beta$", xticks=ODD)
        axes[0].set_title("Regular polygons")
        for colour, n in zip(theme.palette, starts.n.values):
            axes[1].plot(starts.beta, starts.share.sel(n=n), "o-", color=colour, label=f"$n={n}$")
        axes[1].axvspan(-2 / 3, -0.16, color=theme.palette[1], alpha=0.25, lw=0)
        axes[1].set(xlabel=r"$\beta$", ylabel="share in consensus", ylim=(0, 1.05))
        axes[1].set_title("Random starts, $t=100$")
        axes[1].legend(loc="lower right")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    polygons, starts = data["polygons"].to_dataset(), data["starts"].to_dataset()
    count, share = starts.attrs["repeats"], float(data["basin"].share)
    others = polygons.threshold.sel(n=[5, 7, 9])
    return [
        Claim(
            "triangle",
            "three tokens at $120°$ are stable exactly below $β = −2/3$",
            "arXiv 2507.22857 (failure below $−2/3$)",
            float(polygons.threshold.sel(n=3)),
            near(-2 / 3, 1e-9),
        ),
        Claim(
            "others",
            "the regular 5-, 7- and 9-gon become stable only at lower $β$ than the"
            " triangle, if at all (greatest threshold)",
            "derived here; verdict: no polygon decides the open range",
            float(others.fillna(-20.0).max())
            if bool(polygons.threshold.notnull().any())
            else np.nan,
            at_most(-2 / 3),
        ),
        *(
            Claim(
                f"met-{n}-{abs(beta):g}",
                f"USA on the circle, $β = {beta:g}$ in the open range, $n = {n}$: share of"
                f" {count} uniform starts in consensus at $t = 100$",
                OPEN + "; verdict: undecided, nothing else found",
                float(starts.share.sel(n=n, beta=beta)),
                between(1, 1),
                note=f"another state of share above ${3 / count:.2g}$ would have shown (95 %)",
            )
            for n in SIZES
            for beta in (-0.6, -0.4)
        ),
        Claim(
            "trapped",
            f"control: at $β = −1$ a share of {share:.4f} of the starts of $n = 3$ ends in the"
            " triangle, that of its basin",
            "arXiv 2507.22857 (failure below $−2/3$); basin: angles on a grid, derived here",
            1 - float(starts.share.sel(n=3, beta=-1.0)),
            monte_carlo(share, np.sqrt(share * (1 - share) / count), slack=CELLS**-1.5),
            error=float(np.sqrt(share * (1 - share) / count)),
            note=f"binomial error; slack for the cells at the edge of the basin, ${CELLS}^(−3/2)$;"
            " so the method sees other stable states where there are some",
        ),
    ]

"""How often $n$ uniform tokens share an open hemisphere.

Tokens lie in no open hemisphere exactly when 0 is in their convex hull (Gordan). That is decided
for every sample by nonnegative least squares: $min |Σ_i c_i x_i|^2 + (Σ_i c_i − 1)^2$ over $c ≥ 0$
is 0 if 0 is in the hull, positive otherwise. On some samples the answer is compared with a linear
program: $⟨x_i, w⟩ ≥ 1$ for all $i$. Samples come from the start Uniform(32, 20): the first $n$
tokens, and of them the first $d$ coordinates, whose directions are uniform too. Wendel's formula is
what they must meet.
"""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr
from scipy.optimize import linprog, nnls

from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Uniform
from tokenflock.theory import hemisphere_probability

SOURCE = "Theorem 6.7"
CAPTION = (
    "See measured shares of starts that fit in one open hemisphere (marks) on Wendel's formula"
    " (lines): with $d ≥ n$ tokens always do."
)
PAIRS = ((3, 2), (4, 2), (4, 3), (10, 3), (32, 8), (16, 16), (32, 16), (32, 20))
CHECKED = 40  # samples of each pair that the linear program decides too


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    count = scale.pick(quick=10_000, paper=40_000)
    samples = _samples(count)
    share, differ = zip(*(_decided(samples[:, :n, :d]) for n, d in PAIRS))
    return xr.Dataset(
        {
            "share": ("pair", list(share)),
            "differ": ("pair", list(differ)),
            "n": ("pair", [n for n, _ in PAIRS]),
            "d": ("pair", [d for _, d in PAIRS]),
        },
        attrs={
            "setting": (
                f"{count} samples of each of {len(PAIRS)} pairs $(n, d)$, {CHECKED} of them"
                " decided twice"
            ),
            "count": count,
        },
    )


def _samples(count: int) -> np.ndarray:
    """Uniform tokens, (count, 32, 20).

    The first d coordinates of the first n of them point in n uniform directions of R^d.
    """
    with precision("float32"):
        keys = jax.random.split(jax.random.key(67), count)
        return np.asarray(jax.jit(jax.vmap(Uniform(n=32, d=20).draw))(keys), float)


def _decided(samples: np.ndarray) -> tuple[float, int]:
    """The share of samples in an open hemisphere, and how often the linear program differs."""
    inside = np.array([_in_hemisphere(x) for x in samples])
    return float(inside.mean()), sum(
        _by_programming(x) != answer for x, answer in zip(samples[:CHECKED], inside)
    )


def _in_hemisphere(x: np.ndarray) -> bool:
    """Whether 0 is outside the convex hull of the tokens."""
    away = np.zeros(x.shape[1] + 1)
    away[-1] = 1
    return nnls(np.vstack([x.T, np.ones(len(x))]), away)[1] > 1e-9


def _by_programming(x: np.ndarray) -> bool:
    """Whether some w has <x_i, w> >= 1 for all i."""
    return (
        linprog(np.zeros(x.shape[1]), A_ub=-x, b_ub=-np.ones(len(x)), bounds=(None, None)).status
        == 0
    )


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(4.6, 3.0))
    with look(ax) as theme:
        for colour, mark, n in zip(theme.palette, "os^Dv", np.unique(data.n)):
            d = np.arange(1, 33)
            ax.plot(d, hemisphere_probability(n, d), color=colour, linewidth=0.9)
            shares = data.where(data.n == n, drop=True)
            bar = 2 * np.sqrt(shares.share * (1 - shares.share) / data.attrs["count"])
            ax.errorbar(
                shares.d,
                shares.share,
                bar,
                fmt=mark,
                color=colour,
                markersize=4.5,
                label=f"$n={n}$",
            )
        ax.set(
            xlabel="dimension $d$",
            ylabel="P(one open hemisphere)",
            xlim=(1, 33),
            ylim=(-0.03, 1.05),
        )
        ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.42))
        ax.set_title("Wendel's formula (lines) and measured shares")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    count = data.attrs["count"]
    rows = zip(data.n.values, data.d.values, data.share.values)
    statements = [_share_claim(int(n), int(d), float(share), count) for n, d, share in rows]
    twice = Claim(
        "two-tests",
        "nonnegative least squares and the linear program decide alike (samples on which they"
        " differ)",
        "Theorem 6.7, method",
        float(data.differ.sum()),
        near(0, 0),
        note=f"{CHECKED * data.sizes['pair']} samples",
    )
    return [*statements, twice]


def _share_claim(n: int, d: int, share: float, count: int) -> Claim:
    exact = float(hemisphere_probability(n, d))
    error = float(np.sqrt(exact * (1 - exact) / count))
    return Claim(
        f"wendel-{n}-{d}",
        f"{n} uniform tokens in $d = {d}$ lie in an open hemisphere with probability ${exact:.6g}$",
        "Theorem 6.7 (Wendel)",
        share,
        monte_carlo(exact, error),
        error=error,
        note=(
            "$d ≥ n$: always, so that Theorem 6.3 applies to almost every start"
            if d >= n
            else f"{count} samples"
        ),
    )

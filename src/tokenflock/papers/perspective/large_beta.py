"""Large $β$: what the proof of Theorem 5.1 is made of.

On the circle the Hessian of the energy has the entries $g(θ_i − θ_j) / n^2$. The second derivatives
of the library's energy are taken automatically and compared with that formula ($n = 7$, $β = 3$);
for $d = 4$ a part of the tokens is turned by $e^{sB}$, and the second derivatives along the basis
$B_ab$ of the skew matrices are added up, which is the exact mean over Gaussian skew matrices. The
range $τ*$ is the angle at which that sum changes sign for two tokens. Critical points of the energy
on the circle are searched by least squares on the velocity of USA, from random angles and from all
splits into two antipodal clusters, for $n = 4$ and 5 and $β$ from 1 to the value where $(n−1) τ* =
π/2$, and for $n = 3$ at $β = −1$ for contrast: each has a Hessian, and for each subset $S$ the sum
(B.2). Last, 4 tokens follow SA from uniform starts at that $β$ (RK4, $h = 0.5$) until $t = 10000$.
"""

from __future__ import annotations

from itertools import combinations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import root

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.observables import MinimumCosine
from tokenflock.papers.perspective._pointwise import (
    circle,
    energy_hessian,
    turning,
    turning_jacobian,
    zero,
)
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_most, between, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import (
    attraction_range,
    interaction_curvature,
    polygon_growth,
    saddle_threshold,
    triangle_eigenvalue,
)

SOURCE = "Theorem 5.1"
CAPTION = (
    "See the range $τ*$ within which tokens attract shrink with $β$, the two values of $β$ at"
    " which theorems begin to hold, and critical points other than consensus stay unstable."
)
# beta, d
RANGES = ((1.0, 2), (2.0, 2), (4.0, 2), (6.0, 2), (9.0, 2), (100.0, 2), (2.0, 3), (9.0, 3))
# n, beta
SEARCHES = ((3, -1.0), *((n, float(b)) for n in (4, 5) for b in (1, 2, saddle_threshold(n))))


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    rng = np.random.default_rng(0)
    starts, repeats = scale.pick(quick=16, paper=128), scale.pick(quick=32, paper=512)
    attrs = {
        "setting": (
            f"{starts} starts of the search for each $n$ and $β > 0$; {repeats} runs with $n = 4$,"
            " $d = 2$, $β = 2√3$"
        )
    }
    parts = {
        "hessian": xr.Dataset({"circle": _circle_mismatch(rng), "sphere": _sphere_mismatch(rng)}),
        "range": xr.Dataset(
            {"tau": ("case", [_range(*case) for case in RANGES])},
            coords={
                "beta": ("case", [b for b, _ in RANGES]),
                "d": ("case", [d for _, d in RANGES]),
            },
        ),
        "threshold": _thresholds(),
        "critical": _critical_points(rng, starts),
        "consensus": _consensus(repeats, scale),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs)} | parts)


def _circle_mismatch(rng: np.random.Generator, n: int = 7, beta: float = 3.0) -> float:
    """Largest error of the printed Hessian on the circle, relative to its largest entry."""
    theta = rng.uniform(0, 2 * np.pi, n)
    g = interaction_curvature(theta[:, None] - theta, beta) / n**2
    np.fill_diagonal(g, 0)
    measured = energy_hessian(circle, theta, beta)
    return float(np.abs(measured - (g - np.diag(g.sum(axis=1)))).max() / np.abs(g).max())


def _skew_basis(d: int) -> np.ndarray:
    """B_ab = e_a e_b^T - e_b e_a^T for a < b."""
    pairs = list(combinations(range(d), 2))
    basis = np.zeros((len(pairs), d, d))
    for B, (a, b) in zip(basis, pairs):
        B[a, b], B[b, a] = 1, -1
    return basis


def _rotated(s: Array, B: Array, x: Array, moving: Array) -> Array:
    """Tokens, of which the `moving` ones are rotated by 1 + sB + (sB)^2/2: e^{sB} up to what second
    derivatives see.
    """
    rotated = x + s[0] * x @ B.T + s[0] ** 2 / 2 * x @ (B @ B).T
    return jnp.where(moving[:, None] > 0, rotated, x)


def _mean_curvature(x: np.ndarray, moving: np.ndarray, beta: float) -> float:
    """Sum over the basis of skew matrices of d^2 E / ds^2: the mean over Gaussian skew matrices."""
    return float(
        sum(
            energy_hessian(_rotated, np.zeros(1), beta, B, x, moving)[0, 0]
            for B in _skew_basis(x.shape[1])
        )
    )


def _sphere_mismatch(rng: np.random.Generator, n: int = 7, d: int = 4, beta: float = 3.0) -> float:
    """(B.4): the mean curvature is -n^-2 sum of g over pairs of a moving and a resting token."""
    x = rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    moving = np.array([1.0] * 3 + [0.0] * (n - 3))
    expected = -interaction_curvature(np.arccos(x[:3] @ x[3:].T), beta, d).sum() / n**2
    return float(abs(_mean_curvature(x, moving, beta) / expected - 1))


def _range(beta: float, d: int) -> float:
    """Angle of two tokens at which the mean curvature of the energy changes sign."""
    moving, e = np.array([0.0, 1.0]), np.eye(d)

    def curvature(tau: float) -> float:
        return _mean_curvature(
            np.stack([e[0], np.cos(tau) * e[0] + np.sin(tau) * e[1]]), moving, beta
        ) * np.exp(-beta * np.cos(tau))

    return zero(curvature, 1e-3, min(np.pi / 2, 2 * np.sqrt((d - 1) / beta)), xtol=1e-13)


def _thresholds(n: int = 32) -> xr.Dataset:
    """The beta at which the measured (n-1) tau* equals pi/2, and pi."""
    angles = np.array([np.pi / 2, np.pi])
    logarithms = [
        zero(lambda log, a=a: (n - 1) * _range(np.exp(log), 2) - a, 3.0, 6.3, xtol=1e-10)
        for a in angles
    ]
    return xr.Dataset(
        {"beta": ("angle", np.exp(logarithms))}, coords={"angle": angles}, attrs={"n": n}
    )


def _critical_points(rng: np.random.Generator, starts: int) -> xr.Dataset:
    """For each search: how many critical points that are no consensus, and how stable the most
    stable of them is.
    """
    # few find the triangle
    rows = [_search(rng, n, beta, starts if beta > 0 else 6 * starts) for n, beta in SEARCHES]
    names = ("found", "growth", "lowest")
    return xr.Dataset(
        {name: ("search", [row[k] for row in rows]) for k, name in enumerate(names)},
        coords={
            "n": ("search", [n for n, _ in SEARCHES]),
            "beta": ("search", [b for _, b in SEARCHES]),
        },
    )


def _search(rng: np.random.Generator, n: int, beta: float, starts: int) -> tuple[int, float, float]:
    """(distinct critical points but consensus, least of their largest eigenvalues, most of their
    least sums (B.2)).

    Eigenvalues are those of the USA flow without the rotation of all tokens; sums are in units of
    e^beta.
    """
    law, points, growth, sums = Unnormalised(beta=beta), set(), [], []
    split = np.pi * (np.arange(n) < np.arange(1, n // 2 + 1)[:, None])
    for theta in np.concatenate([rng.uniform(0, 2 * np.pi, (starts, n)), split]):
        end = root(
            lambda a: turning(law, a),
            theta,
            jac=lambda a: turning_jacobian(law, a),
            method="lm",
            tol=1e-14,
        )
        cosines = np.cos(end.x[:, None] - end.x)
        if np.abs(end.fun).max() > 1e-11 or cosines.min() > 1 - 1e-4:
            continue
        # the same for turned and renumbered tokens
        points.add(tuple(np.sort(cosines, axis=None).round(3) + 0.0))
        J = turning_jacobian(law, end.x)
        shift = np.full((n, n), 1 / n)  # the direction in which all turn
        growth.append(np.linalg.eigvalsh(J - 1e3 * shift)[-1])
        sums.append(_least_sum(n * J) * np.exp(-beta))
    return len(points), min(growth, default=np.nan), max(sums, default=np.nan)


def _least_sum(g: np.ndarray) -> float:
    """Least sum over i in S, j not in S of g_ij, for all subsets S."""
    n = len(g)
    subsets = [list(S) for size in range(1, n // 2 + 1) for S in combinations(range(n), size)]
    return min(g[np.ix_(S, [j for j in range(n) if j not in S])].sum() for S in subsets)


def _consensus(repeats: int, scale: Scale) -> xr.Dataset:
    """Least cosine of 4 tokens on the circle, at the beta beyond which the proof says that only
    consensus attracts.
    """
    return flock.ensemble(
        SelfAttention(beta=float(saddle_threshold(4))),
        Uniform(n=4, d=2),
        repeats=repeats,
        t=1e4,
        frames=41,
        solver=RK4(h=0.5),
        observe=[MinimumCosine()],
        keep=True,
        dtype="float64",
        progress=scale.progress,
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(3.2, 2.9))
    _draw_range(axes[0], data["range"].to_dataset())
    _draw_threshold(axes[1], data["threshold"].to_dataset())
    _draw_growth(axes[2], data["critical"].to_dataset())
    return figure


def _draw_range(ax: Axes, data: xr.Dataset) -> None:
    beta = np.geomspace(0.5, 200, 200)
    with look(ax) as theme:
        for colour, dash, mark, d in zip(theme.palette, ("-", "--"), "os", (2, 3)):
            ranges = data.where(data.d == d, drop=True)
            ax.plot(beta, attraction_range(beta, d), dash, color=colour)
            ax.plot(ranges.beta, ranges.tau, mark, color=colour, markersize=4, label=f"$d={d}$")
        ax.set(
            xscale="log",
            yscale="log",
            xlabel=r"$\beta$",
            ylabel=r"$\tau^*_\beta$ (rad)",
            title="Range of attraction",
        )
        ax.legend(loc="lower left", title="measured (lines: theory)", alignment="left")


def _draw_threshold(ax: Axes, data: xr.Dataset) -> None:
    n = int(data.attrs["n"])
    beta = np.geomspace(30, 1000, 200)
    with look(ax) as theme:
        ax.plot(beta, (n - 1) * attraction_range(beta) / np.pi, color=theme.palette[0])
        for threshold, angle in zip(data.beta.values, data.angle.values):
            ax.axhline(angle / np.pi, color=theme.faint, linewidth=0.8, zorder=0)
            ax.plot(threshold, angle / np.pi, "o", color=theme.palette[0], markersize=4)
            ax.annotate(
                rf"$\beta={threshold:.2f}$",
                (threshold, angle / np.pi),
                xytext=(6, 6),
                textcoords="offset points",
            )
        ax.axvline(n**2 / np.pi**2, color=theme.palette[2], linestyle="--", linewidth=1)
        ax.text(
            n**2 / np.pi**2 * 1.08,
            0.12,
            rf"printed: $n^2/\pi^2={n**2 / np.pi**2:.2f}$",
            color=theme.palette[2],
        )
        ax.set(
            xscale="log",
            ylim=(0, 2),
            xlabel=r"$\beta$",
            ylabel=r"$(n-1)\,\tau^*_\beta\,/\,\pi$",
            title=f"Two thresholds, $n={n}$",
        )


def _draw_growth(ax: Axes, data: xr.Dataset) -> None:
    with look(ax) as theme:
        beta = np.linspace(0.3, 6.5, 100)
        ax.plot(
            beta,
            np.exp(-beta),
            color=theme.faint,
            zorder=0,
            label=r"antipodal clusters, $e^{-\beta}$",
        )
        for colour, mark, n in zip(theme.palette, "o^", (4, 5)):
            saddles = data.where(data.n == n, drop=True)
            ax.plot(
                saddles.beta,
                saddles.growth,
                mark,
                color=colour,
                markersize=5 if n == 4 else 4,
                label=f"$n={n}$, most stable found",
            )
        ax.set(
            yscale="log",
            xlabel=r"$\beta$",
            ylabel="largest eigenvalue (USA)",
            title="Critical points other than consensus",
        )
        ax.legend(loc="lower left")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_hessian_claims(data),
        *_range_claims(data),
        *_saddle_claims(data),
        _consensus_claim(data),
    ]


def _hessian_claims(data: xr.DataTree) -> list[Claim]:
    hessian = data["hessian"].to_dataset()
    return [
        Claim(
            "hessian-circle",
            "on the circle $∂²E/∂θ_i∂θ_j = g(θ_i − θ_j)/n²$, and minus the sum of its row"
            " on the diagonal ($n = 7$, $β = 3$): relative error",
            "(B.1)",
            float(hessian.circle),
            at_most(1e-12),
        ),
        Claim(
            "hessian-sphere",
            "for $d = 4$ the mean over skew $B$ of $d²E/ds²$, where the tokens of $S$ turn"
            " by $e^{sB}$, is $−n⁻² Σ_{i∈S, j∉S} g(∠(x_i, x_j))$ with $g(ζ) = e^{β cos"
            " ζ}((d−1) cos ζ − β sin²ζ)$ ($n = 7$, $β = 3$): relative error",
            "(B.4)",
            float(hessian.sphere),
            at_most(1e-12),
            note="the mean is exact: $E B² = −(d−1) I$ and $E⟨Bx, y⟩² = 1 − ⟨x, y⟩²$",
        ),
    ]


def _range_claims(data: xr.DataTree) -> list[Claim]:
    ranges = data["range"].to_dataset()
    error = np.abs(
        ranges.tau - attraction_range(ranges.beta.values, ranges.d.values.astype(int))
    ).max()
    shown = ", ".join(
        f"$β = {b:g}$: ${t:.10f}$"
        for b, d, t in zip(ranges.beta.values, ranges.d.values, ranges.tau.values)
        if d == 2
    )
    half, full = data["threshold"].beta.values
    n = int(data["threshold"].attrs["n"])
    printed = f"n²/π² = {n**2 / np.pi**2:.2f}"
    return [
        Claim(
            "range",
            "the curvature of the pair energy changes sign at $τ*$ with $β sin²τ* = (d−1)"
            " cos τ*$: largest error over $β = 1$ to 100 for $d = 2$ and $β = 2$, 9 for $d"
            " = 3$",
            "Appendix B, (B.2)",
            float(error),
            at_most(1e-9),
            note=f"$d = 2$, {shown}",
        ),
        Claim(
            "threshold-half",
            "$(n−1) τ* = π/2$, which the proof needs, holds at $β ="
            f" {saddle_threshold(n):.4f}$ for $n = {n}$, $d = 2$",
            "Theorem 5.1, Appendix B",
            float(half),
            near_relative(saddle_threshold(n), 1e-7),
            erratum=(
                f"After Problem 3, $β ≥ {printed}$ is said to suffice. The proof as written"
                f" needs $β ≥ {half:.2f}$ for $n = {n}$; the value is right all the same,"
                f" since $β ≥ {full:.2f}$ puts the tokens in an open half circle."
            ),
        ),
        Claim(
            "threshold-full",
            "$(n−1) τ* = π$, enough for an open half circle, holds at $β ="
            f" {saddle_threshold(n, np.pi):.4f}$ for $n = {n}$, $d = 2$",
            "remark after Problem 3",
            float(full),
            near_relative(saddle_threshold(n, np.pi), 1e-7),
            note=(
                f"this is what the printed ${printed}$ approximates; tokens in an open half circle"
                " collapse by Lemma 6.4"
            ),
        ),
    ]


def _saddle_claims(data: xr.DataTree) -> list[Claim]:
    points = data["critical"].to_dataset()
    saddles = points.where(points.n > 3, drop=True)
    stable = points.where(points.n == 3, drop=True).isel(search=0)
    return [
        Claim(
            "saddles",
            "each critical point found on the circle but consensus is a strict saddle ($n ="
            f" 4$, 5; $β = {', '.join(f'{beta:.3g}' for beta in np.unique(saddles.beta))}$):"
            " for each $n$ and $β$ the least of their largest eigenvalues under USA is"
            f" $e^{{−β}}$, that of two antipodal clusters (greatest relative difference)",
            "Theorem 5.1 (large $β$), Theorem 4.3 ($β ≤ 1$), arXiv 2507.22857 (all)",
            float(np.abs(saddles.growth * np.exp(saddles.beta) - 1).max()),
            at_most(1e-4),
            note=(
                f"{', '.join(map(str, saddles.found.values.astype(int)))} distinct critical"
                f" points; two antipodal clusters have the eigenvalue $e^{{−β}}$ whatever"
                " their masses"
            ),
        ),
        Claim(
            "subsets",
            "each of them has a subset $S$ with $Σ_{i∈S, j∉S} g(θ_i − θ_j) < 0$, which"
            " (B.2) forbids at a maximum: the weakest of these is $−(n−1) e^{−β}$ for each"
            " $n$ and $β$, that of one token against all others opposite (greatest relative"
            " difference)",
            "(B.2)",
            float(np.abs(saddles.lowest * np.exp(2 * saddles.beta) / (saddles.n - 1) + 1).max()),
            at_most(1e-4),
        ),
        Claim(
            "contrast",
            "the search does find a stable critical point where there is one, the triangle"
            " for $n = 3$ and $β = −1$: its largest eigenvalue under USA",
            "arXiv 2507.22857",
            float(stable.growth),
            near(triangle_eigenvalue(-1.0), 1e-9),
        ),
        Claim(
            "subsets-stable",
            "at that stable critical point every sum (B.2) is positive: the least, in units"
            " of $e^β$",
            "(B.1), (B.2)",
            float(stable.lowest),
            near(2 * interaction_curvature(2 * np.pi / 3, -1.0) * np.e, 1e-9),
        ),
    ]


def _consensus_claim(data: xr.DataTree) -> Claim:
    last = data["consensus"].minimum_cosine.isel(time=-1).values
    beta, count = saddle_threshold(4), len(last)
    return Claim(
        "consensus",
        f"$n = 4$ tokens on the circle reach consensus at $β = {beta:.4f}$, where $(n−1) τ*"
        f" = π/2$: share of {count} runs of SA by $t = 10000$",
        "Theorem 5.1",
        float((last > 1 - 1e-6).mean()),
        between(1, 1),
        note=(
            f"two antipodal clusters live for $t ≈ {1 / polygon_growth(2, beta):.0f}$ here;"
            " at the threshold for $n = 32$ they would live for"
            f" $e^{2 * saddle_threshold(32):.0f}$, so only small $n$ can be followed to the"
            f" end; if a share $p$ of starts failed, {count} successes would have"
            f" probability below 5 % for $p > {3 / count:.2g}$"
        ),
    )

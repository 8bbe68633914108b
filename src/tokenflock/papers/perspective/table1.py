"""The limits of tokens in $R^d$ for several value matrices.

No sphere here: attention acts on $R^d$, seen in the frame $z = e^(−tV) x$, with $Q = K = I$ and $β
= 1$. 20 tokens uniform in $[−5, 5]^d$ are followed by RK4 ($h = 0.01$) up to $t = 10$, with the
matrices $V$ of the published code. Rows of the table: $V = I$ (corners of a polytope); a simple
greatest eigenvalue (at most three parallel hyperplanes, across the eigenvector of $V^T$); a
paranormal $V = diag(1, 1, −1/2)$ (polytope times subspace); $V = −I$ (all falls to 0, without
rescaling). Beside the table: a $V$ with two positive eigenvalues, up to $t = 30$, whose tokens are
conjectured to end on subspaces of codimension two. On the line the attention matrix becomes
Boolean. Example 9.3, infinite $β$: three starts that differ by $1e-6$ go to three limits.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.spatial import ConvexHull

from tokenflock.dynamics import Hardmax, PureAttention, RescaledAttention
from tokenflock.observables import AttentionMatrix
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4, Euler
from tokenflock.starts import Box, Given
from tokenflock.verbs.simulate import simulate

SOURCE = "Table 1"
CAPTION = (
    "See the rescaled tokens $z$ go from their starts (light) to corners or hyperplanes (red), as"
    " each eigenvalue structure of $V$ says."
)
N, END = 20, 10.0
PLANE = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
SPACE = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
MIXED = np.diag([1.0, 1.0, -0.5])
TWO = np.array(  # two positive eigenvalues, 1.96 and 0.25, and a negative one
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    seeds = scale.pick(quick=8, paper=16)
    runs = {
        "identity": _rescaled(1.0, 2, seeds),
        "plane": _rescaled(PLANE, 2, seeds),
        "space": _rescaled(SPACE, 3, seeds),
        "mixed": _rescaled(MIXED, 3, seeds),
        "two": _rescaled(
            TWO, 3, max(2, seeds // 4), end=3 * END
        ),  # the second eigenvalue is small, so it runs longer
        "minus": _collapse(max(2, seeds // 4)),
        "line": _line(seeds),
        "hardmax": _example(),
    }
    setting = (
        f"$R^d$, $β = 1$, $Q = K = I$, $n = 20$ tokens in $[−5, 5]^d$, {seeds} starts for each"
        f" $V$, $t$ up to {END:g}"
    )
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(run) for name, run in runs.items()},
    )


def _stack(runs: list[xr.Dataset]) -> xr.Dataset:
    return xr.concat([run[["x"]].drop_attrs() for run in runs], dim="seed")


def _rescaled(V: np.ndarray | float, d: int, seeds: int, end: float = END) -> xr.Dataset:
    law = RescaledAttention(V=V)
    return _stack(
        [
            simulate(law, Box(n=N, d=d), t=end, frames=101, solver=RK4(h=0.01), seed=k)
            for k in range(seeds)
        ]
    )


def _collapse(seeds: int) -> xr.Dataset:
    """V = -I, not rescaled: slow, so it runs longer."""
    law, times = (
        PureAttention(V=-1.0),
        np.concatenate([np.arange(0, 2, 0.02), np.geomspace(2, 400, 60).round(1)]),
    )
    return _stack(
        [
            simulate(law, Box(n=N, d=2), times=times, solver=RK4(h=0.02), seed=k)
            for k in range(seeds)
        ]
    )


def _line(seeds: int) -> xr.Dataset:
    """Tokens on the line, and their attention matrix at the end."""
    law, options = RescaledAttention(V=1.0), {"t": END, "frames": 11, "solver": RK4(h=0.01)}
    see = [AttentionMatrix(dynamics=law, t=END)]
    runs = [
        simulate(law, Box(n=N, d=1), seed=k, observe=see, **options).isel(time=-1)
        for k in range(seeds)
    ]
    return xr.concat([run[["x", "attention"]].drop_attrs() for run in runs], dim="seed").drop_vars(
        "time"
    )


def _example() -> xr.Dataset:
    """Example 9.3: z_3 at 0 (to within 1e-6) between z_1 = (1, 1) and z_2 = (-1, 1), at infinite
    beta.
    """
    thirds = ((1e-6, 0.0), (-1e-6, 0.0), (0.0, 1e-6))
    tokens = [np.array([[1.0, 1.0], [-1.0, 1.0], third]) for third in thirds]
    return _stack(
        [simulate(Hardmax(), Given(x), t=20.0, frames=101, solver=Euler(h=0.01)) for x in tokens]
    )


def _support(x: np.ndarray) -> np.ndarray:
    """How far the convex hull reaches in 64 directions, (..., 64)."""
    angle = 2 * np.pi * np.arange(64) / 64
    return (x @ np.stack([np.cos(angle), np.sin(angle)])).max(axis=-2)


def _places(x: np.ndarray) -> np.ndarray:
    """One token for each group of tokens nearer than 1e-2 to it."""
    kept: list[np.ndarray] = []
    for token in x:
        if all(np.linalg.norm(token - other) > 1e-2 for other in kept):
            kept.append(token)
    return np.array(kept)


def _strays(x: np.ndarray) -> int:
    """How many places are neither 0 nor corners of the convex hull of all."""
    places = _places(x)
    corner = np.zeros(len(places), bool)
    corner[ConvexHull(places).vertices] = True
    return int((~corner & (np.linalg.norm(places, axis=1) > 1e-2)).sum())


def _heights(x: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Coordinates of tokens across the hyperplanes: along the eigenvector phi_1* of V^T."""
    values, vectors = np.linalg.eig(V.T)
    normal = np.real(vectors[:, np.real(values).argmax()])
    return x @ (normal / np.linalg.norm(normal))


def _groups(values: np.ndarray) -> int:
    """How many groups of numbers there are, parted by gaps larger than 1e-2."""
    return int((np.diff(np.sort(values)) > 1e-2).sum()) + 1


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(2, 3, size=(2.9, 2.75))
    titles = {
        "identity": r"$V=I$: corners of a polytope",
        "plane": r"$\lambda_1$ simple: parallel lines ($t\leq5$)",
        "mixed": r"$V=\mathrm{diag}(1,1,-\frac{1}{2})$, first two coordinates",
        "minus": r"$V=-I$: all to 0 (tokens $x$, not $z$)",
    }
    for ax, (name, title) in zip(axes, titles.items()):
        run = data[name].x.isel(seed=0)
        _paths(
            ax,
            run.sel(time=slice(None, 5) if name == "plane" else slice(None)).values[..., :2],
            title,
            name,
        )
    _attention(axes[4], data["line"].to_dataset())
    _three(axes[5], data["hardmax"].x.values)
    return figure


def _paths(ax: Axes, x: np.ndarray, title: str, name: str) -> None:
    letter, reach = "x" if name == "minus" else "z", 1.08 * np.abs(x).max()
    with look(ax) as theme:
        for token in range(x.shape[1]):
            ax.plot(*x[:, token].T, color=theme.neutral, linewidth=0.6)
        ax.plot(*x[0].T, "o", color=theme.palette[5], markersize=2.5, label="start")
        ax.plot(*x[-1].T, "o", color=theme.palette[2], markersize=4.5, label="end")
        ax.set(
            aspect="equal",
            xlim=(-reach, reach),
            ylim=(-reach, reach),
            xlabel=f"${letter}_1$",
            ylabel=f"${letter}_2$",
        )
        ax.set_title(title)
        if name in ("identity", "mixed"):
            corners = x[-1][ConvexHull(x[-1]).vertices]
            ax.plot(
                *np.concatenate([corners, corners[:1]]).T,
                "--",
                color=theme.palette[2],
                linewidth=0.9,
            )
        if name == "identity":
            ax.legend(loc="center", bbox_to_anchor=(0.42, 0.42), fontsize=8, handletextpad=0.2)
        if name == "plane":
            _lines(ax, x[-1], reach, theme.palette[2])


def _lines(ax: Axes, x: np.ndarray, reach: float, colour: str) -> None:
    """The lines across which tokens gather, through the mean of each side."""
    heights, normal = _heights(x, PLANE), _heights(np.eye(2), PLANE)
    for side in (heights < 0, heights > 0):
        if side.any():
            along = np.outer([-3 * reach, 3 * reach], [-normal[1], normal[0]])
            ax.plot(*(heights[side].mean() * normal + along).T, "--", color=colour, linewidth=0.9)


def _attention(ax: Axes, line: xr.Dataset) -> None:
    with look(ax) as theme:
        order = line.x.isel(seed=0, coord=0).values.argsort()
        rows = line.attention.isel(seed=0).values[np.ix_(order, order)]
        ax.imshow(rows, cmap=theme.sequential, vmin=0, vmax=1)
        ax.set(
            xlabel="token listened to, by place",
            ylabel="listening token",
            xticks=[0, 9, 19],
            yticks=[0, 9, 19],
        )
        ax.set_xticklabels(["1", "10", "20"])
        ax.set_yticklabels(["1", "10", "20"])
        ax.set_title(r"$d=1$: attention at $t=10$ is 0 or 1 (bars)")


def _three(ax: Axes, x: np.ndarray) -> None:
    with look(ax) as theme:
        for colour, dash, run in zip(theme.palette, ("-", "--", ":"), x):
            ax.plot(*run[:, 2].T, dash, color=colour, linewidth=1.6)
            ax.plot(*run[-1, 2], "o", color=colour, markersize=5)
        ax.plot(*x[0, 0, :2].T, "s", color=theme.ink, markersize=4, zorder=3)
        for name, (a, b) in (("$z_1$", (1, 1)), ("$z_2$", (-1, 1))):
            ax.annotate(name, (a, b), (0, 7), textcoords="offset points", ha="center")
        ax.annotate(
            "three starts\nwithin $10^{-6}$ of 0",
            (0, 0),
            (0, -24),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
        ax.set(
            aspect="equal",
            xlim=(-1.4, 1.4),
            ylim=(-0.8, 1.6),
            xlabel="first coordinate",
            ylabel="second coordinate",
        )
        ax.set_title(r"Example 9.3, $\beta=\infty$: $z_3$ is not unique")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    x = {
        name: data[name].x.values
        for name in ("identity", "plane", "space", "mixed", "two", "minus", "hardmax")
    }
    return [
        *_identity_claims(x["identity"], data["identity"].time.values),
        *_hyperplane_claims(x),
        _mixed_claim(x["mixed"]),
        _codimension_claim(x["two"]),
        _minus_claim(x["minus"], data["minus"].time.values),
        *_line_claims(data["line"].to_dataset()),
        _example_claim(x["hardmax"][:, -1, 2]),
    ]


def _identity_claims(x: np.ndarray, time: np.ndarray) -> list[Claim]:
    corners = [len(_places(run[-1])) for run in x]
    # (start, 2, token)
    moved = np.linalg.norm(np.diff(x[:, time.searchsorted([4.99, 5.99, 6.99])], axis=1), axis=-1)
    followers = moved[:, 1] > 1e-4
    rates = np.log(moved[:, 0][followers] / moved[:, 1][followers])
    return [
        Claim(
            "hull",
            "$V = I$, $d = 2$: the convex hull of $z(t)$ never grows (greatest increment of"
            " its reach in 64 directions)",
            "Table 1, row $V = I$",
            float(np.diff(_support(x), axis=1).max()),
            at_most(1e-12),
        ),
        Claim(
            "corners",
            "$V = I$, $d = 2$: at $t = 10$ every token is at a corner of the hull or at 0,"
            f" within $1e-2$ (strays, all of {len(x)} starts)",
            "Table 1, row $V = I$",
            float(sum(_strays(run[-1]) for run in x)),
            near(0, 0),
            note=(
                f"between {min(corners)} and {max(corners)} places for 20 tokens; at $t = 0$"
                f" there are {sum(_strays(run[0]) for run in x)} strays"
            ),
        ),
        Claim(
            "approach",
            "$V = I$, $d = 2$: tokens approach their corners like $e^{−t}$ (median over"
            " tokens of the rate from $t = 5$ to 7)",
            "Table 1, row $V = I$",
            float(np.median(rates)),
            near(1, 0.005),
            note=(
                "at the published $t = 5$ some are still"
                f" ${moved[:, 0].max() / (1 - np.exp(-1)):.2g}$ away from their limit"
            ),
        ),
    ]


def _hyperplane_claims(x: dict[str, np.ndarray]) -> list[Claim]:
    statements = []
    for name, V, d in (("plane", PLANE, 2), ("space", SPACE, 3)):
        ends = [_heights(run[-1], V) for run in x[name]]
        kinds = "lines" if d == 2 else "planes"
        statements.append(
            Claim(
                f"hyperplanes-{d}",
                "$V$ with simple greatest eigenvalue"
                f" ${np.linalg.eigvals(V).real.max():.4f}$, $d = {d}$: at $t = 10$ the"
                f" tokens lie on at most three parallel {kinds} (greatest number of groups"
                " of $⟨φ₁*, z⟩$, parted by gaps of $1e-2$)",
                "Table 1, row $λ₁$ simple",
                float(max(_groups(end) for end in ends)),
                between(1, 3),
                note=(
                    "at $t = 0$ there are up to"
                    f" {max(_groups(_heights(run[0], V)) for run in x[name])} groups"
                ),
            )
        )
    return statements


def _mixed_claim(x: np.ndarray) -> Claim:
    return Claim(
        "mixed",
        "$V = diag(1, 1, −½)$: at $t = 10$ the first two coordinates of every token are a"
        f" corner of their hull or 0, within $1e-2$ (strays, all of {len(x)} starts), while"
        " the third is free",
        "Table 1, row $V$ paranormal",
        float(sum(_strays(run[-1, :, :2]) for run in x)),
        near(0, 0),
        note=(
            "the third coordinates of one start spread over"
            f" ${min(np.ptp(run[-1, :, 2]) for run in x):.3g}$ or more"
        ),
    )


def _codimension_claim(x: np.ndarray) -> Claim:
    values, vectors = np.linalg.eigh(TWO)
    across = x @ vectors[:, values > 0]  # coordinates across the lines
    counts = {
        when: max(len(_places(run[frame])) for run in across)
        for when, frame in (("0", 0), ("9", 30), ("30", -1))
    }
    return Claim(
        "codimension",
        f"a symmetric $V$ with eigenvalues ${values[2]:.2f}$, ${values[1]:.2f}$ and"
        f" ${values[0]:.2f}$, $d = 3$: at $t = 30$ the tokens lie on at most three parallel"
        f" lines, one in each plane (greatest number of lines, to within $1e-2$, of {len(x)}"
        " starts)",
        "arXiv 2305.05465, conjecture on codimension $k$",
        float(counts["30"]),
        between(1, 3),
        note=(
            f"at $t = 0$ there are {counts['0']}, at $t = 9$ still {counts['9']}: across the"
            f" second direction tokens meet like $e^{{−{values[1]:.2f} t}}$ only"
        ),
    )


def _minus_claim(x: np.ndarray, time: np.ndarray) -> Claim:
    spread = [np.linalg.eigvalsh(np.cov(run[-1].T, bias=True)).max() for run in x]
    return Claim(
        "minus",
        "$V = −I$, $QᵀK = I$, $d = 2$: all tokens fall to 0, their covariance $C$ like"
        " $1/(2t)$ ($2t$ times its greatest eigenvalue at $t = 400$)",
        "Table 1, row $V = −I$",
        float(2 * time[-1] * np.max(spread)),
        near(1, 0.02),
        note=(
            f"the farthest token is ${np.linalg.norm(x[:, -1], axis=-1).max():.3g}$ from 0."
            " The approach is algebraic: near 0 attention is nearly equal, so that $ẋ ="
            " −Cx$ and $dC/dt = −2C²$"
        ),
    )


def _line_claims(line: xr.Dataset) -> list[Claim]:
    best = np.sort(line.attention.max("other").values, axis=1)
    place, target = line.x.values[..., 0], line.attention.argmax("other").values
    ends = np.stack([place.argmin(axis=1), place.argmax(axis=1)])
    inner = (target[None] != ends[:, :, None]).all(axis=0).sum(axis=1)
    return [
        Claim(
            "boolean",
            "$d = 1$, $V > 0$: at $t = 10$ every row of the attention matrix but at most"
            " one is one-hot (least greatest entry of these rows)",
            "Table 1; arXiv 2305.05465, Theorem 2.1",
            float(best[:, 1].min()),
            at_least(1 - 1e-6),
        ),
        Claim(
            "extremes",
            "$d = 1$, $V > 0$: all rows but at most one listen to the first or the last"
            " token (greatest number of others)",
            "Table 1; arXiv 2305.05465, Theorem 2.1",
            float(inner.max()),
            between(0, 1),
        ),
    ]


def _example_claim(ends: np.ndarray) -> Claim:
    wanted = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]])
    return Claim(
        "example",
        "$z₁ = (1, 1)$, $z₂ = (−1, 1)$, $z₃ = 0$ at infinite $β$: starts of $z₃$ at $(ε, 0)$,"
        " $(−ε, 0)$ and $(0, ε)$, $ε = 1e-6$, end at $z₁$, $z₂$ and $(z₁ + z₂)/2$"
        " (greatest distance)",
        "Example 9.3",
        float(np.linalg.norm(ends - wanted, axis=1).max()),
        between(0, 1e-5),
        note="so no solution from $z₃ = 0$ is singled out by continuity",
    )

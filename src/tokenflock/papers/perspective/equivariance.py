"""The symmetries of the flow map: order, rotations, spans, copies and masses.

Each line compares two runs of the library that a symmetry says are the same, and gives the largest
distance between their tokens over all times; beside it stands a comparison that the symmetry does
not cover, made in the same way. Classical Runge-Kutta, $h = 0.05$, $t = 5$, $n = 16$ tokens,
uniform on $S^3$ ($d = 4$), $β = 2$; $Q$, $K$, $V$ are Gaussian matrices over $√d$. The span is a
random plane of $R^4$; copies and masses are those of 8 tokens.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import ortho_group

import tokenflock as flock
from tokenflock.dynamics import Attention, Causal, MultiHead, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.papers.perspective._pointwise import unit
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Given

SOURCE = "Remark 2.2"
CAPTION = (
    "See what symmetry says is equal agree to rounding (dots in the grey band), and what it "
    "does not cover differ (crosses)."
)
BETA, N, D, END = 2.0, 16, 4, 5.0
ROUNDING, BROKEN = 1e-12, 1e-3


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    rng = np.random.default_rng(0)
    x = unit(rng.normal(size=(N, D)))
    general, listens, causal, SA, USA = (
        _general(rng),
        _general(rng, V=None),
        Causal(beta=BETA),
        SelfAttention(BETA),
        Unnormalised(BETA),
    )
    twice, some = (2,) * 8, (1, 1, 1, 1, 2, 3, 3, 4)
    gaps = {
        "order": (_order(general, x, rng), _order(causal, x, rng)),
        "heads": (_order(_two_heads(rng), x, rng), _order(causal, x, rng)),
        "rotation": (_rotation(SA, x, rng), _rotation(general, x, rng)),
        "span": (_outside(listens, x, rng), _outside(general, x, rng)),
        "coincident": (_coincident(general, x), _coincident(causal, x)),
        "copies": (_masses(SA, x[:8], twice, twice), _masses(SA, x[:8], some, twice)),
        "copies-usa": (_masses(USA, x[:8], twice, twice), _masses(USA, x[:8], some, twice)),
        "masses": (_masses(SA, x[:8], some, some), _masses(SA, x[:8], some, twice)),
    }
    values = np.array(list(gaps.values()))
    return xr.Dataset(
        {"kept": ("symmetry", values[:, 0]), "broken": ("symmetry", values[:, 1])},
        coords={"symmetry": list(gaps)},
        attrs={"setting": f"$n = {N}$, $d = {D}$, $β = {BETA:g}$, RK4 $h = 0.05$, $t ≤ {END:g}$"},
    )


def _general(rng: np.random.Generator, **chosen) -> Attention:
    Q, K, V = rng.normal(size=(3, D, D)) / np.sqrt(D)
    return Attention(**({"beta": BETA, "Q": Q, "K": K, "V": V} | chosen))


def _two_heads(rng: np.random.Generator) -> MultiHead:
    Q, K, V = rng.normal(size=(3, 2, D, D)) / np.sqrt(D)
    return MultiHead(V=V, Q=Q, K=K, beta=BETA)


def _run(law: Dynamics, x: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Tokens at all times, (time, n, d)."""
    return flock.simulate(law, Given(x, w=w), t=END, frames=21, solver=RK4(h=0.05)).x.values


def _order(law: Dynamics, x: np.ndarray, rng: np.random.Generator) -> float:
    order = rng.permutation(len(x))
    return _gap(_run(law, x[order]), _run(law, x)[:, order])


def _rotation(law: Dynamics, x: np.ndarray, rng: np.random.Generator) -> float:
    rotation = ortho_group.rvs(x.shape[1], random_state=rng)
    return _gap(_run(law, x @ rotation), _run(law, x) @ rotation)


def _outside(law: Dynamics, x: np.ndarray, rng: np.random.Generator) -> float:
    """How far tokens that start in a random plane leave it."""
    plane = ortho_group.rvs(x.shape[1], random_state=rng)[:, :2]
    path = _run(law, unit(x @ plane @ plane.T))
    return _gap(path, path @ plane @ plane.T)


def _coincident(law: Dynamics, x: np.ndarray) -> float:
    """The first token and the last, a copy of it."""
    path = _run(law, np.concatenate([x[:-1], x[:1]]))
    return _gap(path[:, :1], path[:, -1:])


def _masses(
    law: Dynamics, x: np.ndarray, counts: tuple[int, ...], weights: tuple[int, ...]
) -> float:
    """Each token so many times, against once with a weight in proportion."""
    return _gap(
        _run(law, np.repeat(x, counts, axis=0)),
        np.repeat(_run(law, x, np.array(weights)), counts, axis=1),
    )


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b, axis=-1).max())


_SAID = {
    "order": (
        "permuting the tokens permutes the flow of attention with general Q, K, V",
        "causal attention",
    ),
    "heads": (
        "permuting the tokens permutes the flow of two heads with general Q, K, V",
        "causal attention",
    ),
    "rotation": (
        "for $Q = K = V = I$ the flow commutes with rotations and reflections of $R^d$",
        "general Q, K, V",
    ),
    "span": (
        "for $V = I$ and general $Q$, $K$ tokens that start in a plane of $R^d$ never leave it",
        "general V",
    ),
    "coincident": (
        "two tokens that coincide stay together under general Q, K, V",
        "causal attention",
    ),
    "copies": (
        "SA moves 8 tokens as it does when each is there twice",
        "unequal numbers of copies",
    ),
    "copies-usa": (
        "USA, with its factor 1/n, moves 8 tokens as it does when each is there twice",
        "unequal numbers of copies",
    ),
    "masses": (
        "under SA 8 clusters of 1, 1, 1, 1, 2, 3, 3, 4 tokens move as 8 tokens with these weights",
        "equal weights",
    ),
}


_LABELS = {
    "order": "order of tokens",
    "heads": "order, two heads",
    "rotation": "rotations of $R^d$",
    "span": "plane kept, $V=I$",
    "coincident": "coincident tokens",
    "copies": "copies, SA",
    "copies-usa": "copies, USA",
    "masses": "clusters as weights",
}


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(6.4, 3.0))
    rows = np.arange(data.sizes["symmetry"])[::-1]
    floor = 1e-17
    with look(ax) as theme:
        ax.axvspan(floor, ROUNDING, color=theme.faint, alpha=0.35, linewidth=0)
        ax.hlines(
            rows,
            np.maximum(data.kept, floor),
            data.broken,
            color=theme.faint,
            linewidth=0.8,
            zorder=1,
        )
        ax.plot(
            np.maximum(data.kept, floor),
            rows,
            "o",
            color=theme.palette[0],
            label="what the symmetry says is equal (0 at the edge)",
            clip_on=False,
        )
        ax.plot(data.broken, rows, "X", color=theme.palette[2], label="not covered by it")
        ax.set_xscale("log")
        ax.set(
            xlim=(floor, 10),
            xlabel="largest distance between tokens that should agree",
            yticks=rows,
        )
        ax.set_yticklabels([_LABELS[str(name)] for name in data.symmetry.values])
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    statements = []
    for name, (statement, without) in _SAID.items():
        gaps = data.sel(symmetry=name)
        note = f"for comparison, {without}: {float(gaps.broken):.2g}"
        statements.append(
            Claim(
                name,
                f"{statement} ($n = {N}$, $β = {BETA:g}$, $t ≤ {END:g}$)",
                SOURCE if name in ("order", "heads") else "from the equations, beside Remark 2.2",
                float(gaps.kept),
                at_most(ROUNDING),
                note=note,
            )
        )
    least = float(data.broken.min())
    statement = (
        "the comparison sees a broken symmetry: laws without one differ by far more than rounding"
    )
    return [*statements, Claim("sensitive", statement, SOURCE, least, at_least(BROKEN))]

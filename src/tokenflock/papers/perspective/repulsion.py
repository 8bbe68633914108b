"""Repelling tokens, and the configurations that minimise the energy.

With $V = −I$ the energy falls. Uniform tokens ($d = 3$ or 2, $β = 2$) are followed by RK4 ($h =
0.2$) up to $t = 800$ under USA and SA, from several starts each; energies at the end are compared
with the closed forms of the simplex, the octahedron, the icosahedron and the pentagon. The inner
products of the end states say whether they are sharp in the sense of Cohn and Kumar: $m$ distinct
inner products, and a spherical $(2m−1)$-design, that is $Σ_ij P_k(⟨x_i, x_j⟩) = 0$ for the
Gegenbauer polynomials $P_k$ of degree 1 … $2m−1$. Random configurations, and small random changes
of each end state, compete with it for the least energy.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import eval_gegenbauer

from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.observables import Energy, InnerProducts
from tokenflock.plots import look, panels
from tokenflock.plots.polyhedra import draw_polyhedron
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import (
    cross_polytope_energy,
    icosahedron_energy,
    polygon_energy,
    simplex_energy,
)
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.measure import measure

SOURCE = "Section 9.1, Theorem 9.2"
CAPTION = (
    "See repelling tokens come to rest as the corners of sharp configurations (blue), which have"
    " $m$ inner products and are $(2m − 1)$-designs, or else of one that is not (red)."
)
BETA = 2.0
LAWS = {"SA": SelfAttention, "USA": Unnormalised}


def bipyramid_energy(beta: float) -> float:
    """Two poles and an equilateral triangle on the equator: 6 pairs at 0, 3 at -1/2, 1 at -1."""
    return float((5 * np.exp(beta) + 2 * (6 + 3 * np.exp(-beta / 2) + np.exp(-beta))) / (50 * beta))


CASES = {  # name: n, d, energy, whether it is sharp
    "simplex": (4, 3, simplex_energy(4, BETA), True),
    "octahedron": (6, 3, cross_polytope_energy(3, BETA), True),
    "icosahedron": (12, 3, icosahedron_energy(BETA), True),
    "pentagon": (5, 2, polygon_energy(5, BETA), True),
    "bipyramid": (5, 3, bipyramid_energy(BETA), False),
}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats = scale.pick(quick=4, paper=32)
    few = scale.pick(quick=("icosahedron",), paper=tuple(CASES))  # where SA runs too
    laws = {name: ("USA", "SA") if name in few else ("USA",) for name in CASES}
    parts = {
        name: _end_states(n, d, laws[name], repeats, scale) for name, (n, d, _, _) in CASES.items()
    }
    setting = (
        f"$V = −I$, $β = 2$, {repeats} uniform starts each, $t = 800$; USA, and SA for"
        f" {', '.join(few)}"
    )
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(part) for name, part in parts.items()},
    )


def _end_states(n: int, d: int, laws: tuple[str, ...], repeats: int, scale: Scale) -> xr.Dataset:
    options = {
        "times": [800.0],
        "solver": RK4(h=0.2),
        "keep": True,
        "dtype": "float64",
        "repeats": repeats,
    }
    runs = [
        ensemble(
            LAWS[name](beta=BETA, repulsive=True),
            Uniform(n=n, d=d),
            observe=[Energy(), InnerProducts()],
            seed=1,
            **options,
        )
        for name in laws
    ]
    ends = xr.concat(
        [run.isel(time=-1, drop=True).drop_attrs() for run in runs],
        dim=xr.Variable("law", list(laws)),
    )
    best = ends.inner_products.values[0, ends.energy.values[0].argmin()]
    return ends[["energy"]].assign(
        gram=(("particle", "other"), best),
        rival=_rivals(best, d, scale.pick(quick=4000, paper=100_000)),
    )


def _rivals(gram: np.ndarray, d: int, count: int) -> float:
    """The least energy of so many configurations: half of them random, half small changes of one
    with this Gram matrix.
    """
    rng, n = np.random.default_rng(9), len(gram)
    values, vectors = np.linalg.eigh(gram)
    x = (vectors * np.sqrt(np.maximum(values, 0)))[:, -d:]
    size = np.where(np.arange(count) % 2, np.inf, 10.0 ** rng.uniform(-4, 0, count))[:, None, None]
    noise = rng.normal(size=(count, n, d))
    tokens = np.where(np.isinf(size), noise, x + np.where(np.isinf(size), 0, size) * noise)
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    rivals = measure(xr.Dataset({"x": (("rival", "particle", "coord"), tokens)}), Energy(beta=BETA))
    return float(rivals.energy.min())


def _distinct(gram: np.ndarray) -> np.ndarray:
    """The distinct inner products of pairs, sorted, apart by more than 1e-3."""
    values = np.sort(gram[np.triu_indices(len(gram), 1)])
    return values[np.diff(values, prepend=-2) > 1e-3]


def _strength(gram: np.ndarray, d: int) -> int:
    """The greatest t such that the tokens are a spherical t-design."""
    gram = np.clip(gram, -1, 1)
    for k in range(1, 12):
        P = (
            np.cos(k * np.arccos(gram))
            if d == 2
            else eval_gegenbauer(k, d / 2 - 1, gram) / eval_gegenbauer(k, d / 2 - 1, 1.0)
        )
        if not abs(P.mean()) <= 1e-6:  # nor is a state without numbers a design
            return k - 1
    return 11


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, len(CASES), size=(1.62, 2.5))
    for ax, (name, (n, d, _, sharp)) in zip(axes, CASES.items()):
        with look(ax) as theme:
            gram = data[name].gram.values
            draw_polyhedron(ax, theme, gram, d, theme.palette[0 if sharp else 2])
            levels = _distinct(gram)
            products = ", ".join(f"{round(level, 3) + 0.0:.3g}" for level in levels)
            ax.set_title(f"{name}, $n={n}$", loc="center")
            verdict = "sharp" if sharp else "not sharp"
            ax.text(
                0.5,
                -0.03,
                rf"$\langle x_i,x_j\rangle$: {products}".replace("-", "\N{MINUS SIGN}")
                + f"\n{_strength(gram, d)}-design: {verdict}",
                transform=ax.transAxes,
                ha="center",
                va="top",
                fontsize=8,
                linespacing=1.5,
            )
    return figure


SOURCES = {True: "Theorem 9.2", False: "not in print; beside Theorem 9.2"}  # sharp or not


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    statements = []
    for name, (n, d, exact, sharp) in CASES.items():
        part = data[name].to_dataset()
        statements += [
            *_energy_claims(name, n, d, exact, sharp, part),
            _rival_claim(name, n, d, exact, sharp, part),
        ]
        statements.append(
            _sharp_claim(name, n, d, part) if sharp else _blunt_claim(name, n, d, part)
        )
    return statements


def _energy_claims(
    name: str, n: int, d: int, exact: float, sharp: bool, part: xr.Dataset
) -> list[Claim]:
    return [
        Claim(
            f"{name}-{law.lower()}",
            f"{n} tokens in $d = {d}$ under {law} with $V = −I$, $β = 2$, come to rest at"
            f" the energy of the {name} (least of {part.sizes['repeat']} starts)",
            SOURCES[sharp],
            float(part.energy.sel(law=law).min()),
            near(exact, 1e-9),
            note=(
                f"{int((part.energy.sel(law=law) < exact + 1e-6).sum())} of {part.sizes['repeat']}"
                " starts come there"
            ),
        )
        for law in part.law.values
    ]


def _rival_claim(name: str, n: int, d: int, exact: float, sharp: bool, part: xr.Dataset) -> Claim:
    lowest = min(float(part.rival), float(part.energy.min()))
    return Claim(
        f"{name}-least",
        f"no configuration of {n} tokens in $d = {d}$ has less energy at $β = 2$: none of"
        " random ones, small changes of it, ends of the flow (least excess)",
        SOURCES[sharp],
        lowest - exact,
        at_least(-1e-12),
        note="" if sharp else "found, not proved",
    )


def _beyond(strength: int, m: int) -> float:
    """How far the strength of a design is beyond the 2m - 1 of a sharp one; no number where there
    are no inner products.
    """
    return float(strength - (2 * m - 1)) if m else np.nan


def _sharp_claim(name: str, n: int, d: int, part: xr.Dataset) -> Claim:
    m, strength = len(_distinct(part.gram.values)), _strength(part.gram.values, d)
    return Claim(
        f"{name}-sharp",
        f"the end state of {n} tokens in $d = {d}$ is sharp: it has $m = {m}$ distinct inner"
        " products and is a $(2m−1)$-design (strength of the design less $2m − 1$)",
        "Definition 9.1",
        _beyond(strength, m),
        at_least(0),
        note=f"a {strength}-design",
    )


def _blunt_claim(name: str, n: int, d: int, part: xr.Dataset) -> Claim:
    m, strength = len(_distinct(part.gram.values)), _strength(part.gram.values, d)
    return Claim(
        f"{name}-sharp",
        f"the end state of {n} tokens in $d = {d}$ minimises the energy and is not sharp"
        " (strength of the design less $2m − 1$)",
        "Theorem 9.2 and Definition 9.1",
        _beyond(strength, m),
        at_most(-1),
        note=(
            f"$m = {m}$ distinct inner products, a {strength}-design; that it is the least"
            " is found by the flow, not proved"
        ),
        erratum=(
            "Theorem 9.2 prints that every minimiser is a sharp configuration or the"
            " 600-cell. Cohn and Kumar prove the converse: those are minimisers. Five"
            " tokens on $S²$ have a minimiser, and no five points there are sharp: $m = 1$"
            " allows 4 points at most, and $m = 2$, 3, 4, … need 3-, 5-, 7-designs, …, of"
            " 6, 12, 20 points and more. The least energy found is that of the triangular"
            f" bipyramid, with $m = {m}$ inner products and strength {strength} where"
            f" {2 * m - 1} is needed"
        ),
    )

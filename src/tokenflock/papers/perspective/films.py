"""The films of the authors' page: tokens on the sphere and on the circle.

64 uniform tokens go through Transformer layers $x ← normalize(x + h A x)$ with $h = 0.1$ up to $t =
15$ (150 layers): on the sphere ($d = 3$) at $β = 1$, the defaults of the published script, and on
the circle ($d = 2$) at $β = 4$. Every layer is one frame.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount, Energy, MinimumCosine
from tokenflock.plots import circle, panels, sphere
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import layer_terminal_rate, polygon_lifetime
from tokenflock.verbs.simulate import simulate

SOURCE = "Films"
CAPTION = (
    "See tokens on the sphere and on the circle at three times: colours are the clusters at "
    "the end of the longest stage, trails the last ten layers, drawn inwards on the circle."
)
CASES = {"sphere": (3, 1.0), "circle": (2, 4.0)}
SHOWN = (0.0, 3.0, 15.0)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    runs = {name: _run(d, beta) for name, (d, beta) in CASES.items()}
    setting = (
        "$n = 64$, layer map with $h = 0.1$, $t$ up to 15; sphere $S^2$: $β = 1$; circle: $β = 4$"
    )
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(run) for name, run in runs.items()},
    )


def _run(d: int, beta: float) -> xr.Dataset:
    observe = [Energy(), MinimumCosine(), ClusterCount(delta=1e-2)]
    return simulate(
        SelfAttention(beta=beta),
        Uniform(n=64, d=d),
        t=15.0,
        frames=151,
        solver=Layer(h=0.1),
        observe=observe,
        seed=0,
    )


def films(data: xr.DataTree) -> dict[str, xr.Dataset]:
    """The runs to film."""
    return {name: data[name].to_dataset() for name in CASES}


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(2, len(SHOWN), size=(2.6, 2.9))
    for row, (name, view) in enumerate((("sphere", sphere), ("circle", circle))):
        for column, at in enumerate(SHOWN):
            view(data[name].to_dataset(), ax=axes[row * len(SHOWN) + column], at=at, tail=10)
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    ball, ring = data["sphere"].to_dataset(), data["circle"].to_dataset()
    gaps = 1 - ball.minimum_cosine
    late = ball.time >= 12
    rate = -float(np.polyfit(ball.time[late], np.log(gaps[late]), 1)[0])
    climbs = [
        Claim(
            f"energy-{name}",
            f"the energy $E_β$ grows in every layer of the film on the {name} ($n = 64$, $d"
            f" = {d}$, $β = {beta:g}$; least increment)",
            "Films; (3.6) for the flow",
            float(data[name].energy.diff("time").min()),
            at_least(-1e-12),
            note=(
                "the theory is about the flow; for the layer map of $h = 0.1$ this is an"
                " observation"
            ),
        )
        for name, (d, beta) in CASES.items()
    ]
    return [
        Claim(
            "sphere-end",
            "the film on the sphere ($n = 64$, $d = 3$, $β = 1$, layers of $h = 0.1$) ends"
            " in one cluster ($1 − min γ_ij$ at $t = 15$)",
            "Films; Theorem 6.1",
            float(gaps[-1]),
            at_most(1e-3),
        ),
        Claim(
            "sphere-rate",
            "there $1 − min ⟨x_i, x_j⟩$ decays at the rate $2 ln(1+h)/h$ of the layer map"
            " at last (slope from $t = 12$ to 15)",
            "Films; Section 2, layer map",
            rate,
            near_relative(layer_terminal_rate(0.1), 0.01),
        ),
        Claim(
            "circle-end",
            "the film on the circle ($n = 64$, $β = 4$) is still in a metastable state at"
            " $t = 15$ (number of clusters)",
            "Films; Figure 4",
            float(ring.cluster_count[-1]),
            between(2, 4),
            note=(
                "two opposite clusters would live for about"
                f" ${float(polygon_lifetime(2, 4.0)):.4g}$"
            ),
        ),
        *climbs,
    ]

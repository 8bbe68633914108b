"""Random weights: fast at the start, or slow at the end.

Blocks of a fresh model with $d = 512$: eight heads and a feed-forward part (GELU), all matrices
drawn anew in every layer so that logits have variance one and maps keep lengths; layers $x ← x + h
u$ with $h = 1$ and the norm in four places. Followed are the mean cosine and the mean squared
radius of 16 uniform tokens over 16 layers. At the start attention outputs have $|A|^2 = e/n + 1/d$
for large $n$ and $d$: a softmax of Gaussian logits of variance one has the sum of squares $e/n$,
and the mean that it takes tilts along the query by $1/√d$; the claims use the integral that is
exact in $n$, with logits that are coordinates of uniform tokens. Under Peri-LN every sublayer adds
a vector of length one in a fresh direction, so the squared radius is $1 + 2 L$ after $L$ layers,
with variance $4 Σ r^2/d$.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import roots_gegenbauer

from tokenflock import simulate
from tokenflock.dynamics import Block
from tokenflock.papers.normalization._schemes import SCHEMES
from tokenflock.parts import Ngpt, Peri, Post, Pre, RandomFeedForward, RandomHeads
from tokenflock.parts.placement import Placement
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_least, at_most, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SOURCE = "Figure: random weights; the initial-velocity theorem"
CAPTION = (
    "See the mean cosine of tokens (left) rise first under Peri-LN and nGPT, and stay low under"
    " Pre-LN and Peri-LN, whose radii grow (right)."
)
D, N, LAYERS = 512, 16, 16
NORMS: dict[str, Placement] = {"post": Post(), "pre": Pre(), "peri": Peri(), "ngpt": Ngpt()}
SIZES = (64, 256)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    draws, n = scale.pick(quick=(16, N), paper=(64, 256))
    runs = [_run(norm, n) for norm in NORMS]
    layers = xr.concat(runs, xr.IndexVariable("scheme", list(NORMS)))
    squares = [[_output(n, seed) for seed in range(draws)] for n in SIZES]
    outputs = xr.Dataset({"square": (("n", "draw"), squares)}, coords={"n": list(SIZES)})
    setting = (
        f"$d = {D}$, 8 heads, GELU, fresh weights in each of {LAYERS} layers, $h = 1$, {n}"
        f" tokens; outputs: one head, $n = 64$ and 256, {draws} draws"
    )
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs={"setting": setting}), "layers": layers, "outputs": outputs}
    )


def _run(norm: str, n: int) -> xr.Dataset:
    """Mean cosine and mean squared radius by layer."""
    heads, feed = RandomHeads(8, period=1.0), RandomFeedForward(period=1.0)
    law, solver = Block(heads, feed_forward=feed, norm=NORMS[norm]), Layer(h=1.0)
    run = simulate(law, Uniform(n=n, d=D), t=LAYERS, frames=LAYERS + 1, solver=solver)
    x = run.x.values
    square = (x**2).sum(-1)
    total = (x / np.sqrt(square)[..., None]).sum(1)
    cosine = ((total**2).sum(-1) - n) / (n * (n - 1))
    return xr.Dataset(
        {"cosine": ("layer", cosine), "square": ("layer", square.mean(-1))},
        coords={"layer": np.arange(LAYERS + 1)},
    )


def _output(n: int, seed: int) -> float:
    """The mean of |A_j|^2 over uniform tokens, one random head of full width."""
    x = np.random.default_rng(seed).normal(size=(n, D))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    law = Block(heads=RandomHeads(1, seed=seed))
    with precision("float64"):
        A = np.asarray(law.attend(jnp.asarray(0.0), jnp.asarray(x), jnp.full(n, 1 / n)))
    return float((A**2).sum(1).mean())


def expected_square(n: int) -> float:
    """E |A|^2, exact in n, for logits S = sqrt(d) times a coordinate of each uniform token, which
    for large d are Gaussian of variance one.

    1/Z^2 = int u e^(-u Z) du makes both parts integrals: the softmax's sum of squares, and the
    products a_1 a_2 S_1 S_2 of its tilt along the query, where <x_j, x_k> is S_j S_k/d.
    """
    coordinate, weights = roots_gegenbauer(120, (D - 2) / 2)
    nodes, weights = np.sqrt(D) * coordinate, weights / weights.sum()
    log_u = np.linspace(-14, 8, 4001) - np.log(n)
    damped = np.exp(-np.exp(log_u[:, None] + nodes))
    left = damped @ weights
    square = damped @ (weights * np.exp(2 * nodes))
    tilt = damped @ (weights * nodes * np.exp(nodes))
    parts = n * square * left ** (n - 1) + n * (n - 1) / D * tilt**2 * left ** (n - 2)
    return float(np.trapezoid(np.exp(2 * log_u) * parts, log_u))


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    layers = data["layers"].to_dataset()
    figure, (left, right) = panels(1, 2, size=(3.8, 3.0))
    with look(left) as theme:
        for colour, norm in zip(theme.palette, NORMS):
            left.plot(
                layers.layer,
                layers.cosine.sel(scheme=norm),
                "o-",
                color=colour,
                markersize=3,
                label=SCHEMES[norm],
            )
        left.set(xlabel="layer", ylabel="mean cosine", ylim=(-0.03, 1.03))
        left.legend(fontsize="small", loc="lower right")
    with look(right) as theme:
        for colour, norm in zip(theme.palette, NORMS):
            right.plot(layers.layer, layers.square.sel(scheme=norm), color=colour)
        right.plot(layers.layer, 1 + 2 * layers.layer, "--", color=theme.ink, label="1 + 2 L")
        right.set(xlabel="layer $L$", ylabel="mean squared radius")
        right.legend(fontsize="small", loc="upper left")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    layers, outputs = data["layers"].to_dataset(), data["outputs"].to_dataset()
    return [*(_output_claim(outputs, n) for n in SIZES), *_layer_claims(layers)]


def _output_claim(outputs: xr.Dataset, n: int) -> Claim:
    square = n * outputs.square.sel(n=n).values
    error = float(square.std(ddof=1) / np.sqrt(len(square)))
    said = n * expected_square(n)
    return Claim(
        f"output-{n}",
        f"the attention output of {n} uniform tokens under a random head ($d = 512$) is of"
        f" size $n^(−1/2)$: $n E|A|² = {said:.4f}$",
        "initial-velocity theorem of arXiv 2510.22026 ($|A| ≤ C(√(log n/n) + log n/d)$);"
        " the constant derived here",
        float(square.mean()),
        monte_carlo(said, error, slack=0.01 * said),
        error=error,
        note="1 % for the lengths of queries and keys, which vary by $d^(−1/2)$",
    )


def _layer_claims(layers: xr.Dataset) -> list[Claim]:
    cosine, half = layers.cosine, LAYERS // 2
    early, late = cosine.sel(layer=1), cosine.sel(layer=LAYERS)
    square = float(layers.square.sel(scheme="peri", layer=half))
    spread = np.sqrt(4 * np.sum(np.arange(1, 2 * half + 1)) / D)
    sphere = layers.square.sel(scheme=["post", "ngpt"])
    return [
        Claim(
            "early",
            "after one layer Peri-LN and nGPT have brought tokens closer than Post-LN and Pre-LN:"
            " least difference of mean cosines",
            "arXiv 2510.22026: normalised outputs start faster; an observation here",
            float(
                early.sel(scheme=["peri", "ngpt"]).min() - early.sel(scheme=["post", "pre"]).max()
            ),
            at_least(0.0),
        ),
        Claim(
            "late",
            f"after {LAYERS} layers Post-LN and nGPT have collapsed further than Pre-LN and"
            " Peri-LN: least difference of mean cosines",
            "arXiv 2510.22026: growing radii slow the end; an observation here",
            float(late.sel(scheme=["post", "ngpt"]).min() - late.sel(scheme=["pre", "peri"]).max()),
            at_least(0.0),
        ),
        Claim(
            "peri-radius",
            f"under Peri-LN the mean squared radius after $L = {half}$ layers of two"
            f" sublayers is $1 + 2L = {1 + 2 * half}$",
            "derived here: each sublayer adds a unit vector in a fresh direction",
            square,
            monte_carlo(1 + 2 * half, spread),
            note=f"one run; standard deviation ${spread:.2g}$",
        ),
        Claim(
            "sphere",
            "under Post-LN and nGPT tokens stay on the sphere (greatest error of $|x|²$)",
            "the table of schemes of arXiv 2510.22026",
            float(np.abs(sphere - 1).max()),
            at_most(1e-12),
        ),
    ]

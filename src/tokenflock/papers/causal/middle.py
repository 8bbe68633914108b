"""Lost in the middle: which positions the last token listens to.

Tokens on the circle hear only their past, near tokens more (weights $∼ e^(−λ (j − k)/N)$, the law
`CausalBias`). While the tokens are uniform, a bump of degree $m$ of token $k$ grows in token $j$ by
the rate $a_m w_(jk)$, $a_m = m^2 I_m(β)$, so that the influence of position $k$ on the last token
at depth $t$ is the last row of $e^(a_m t W)$, $W = (w_(jk))$, summed over $m$ with the weights
$e^(−π^2 m^2/(2 M^2))$ of a bump of width $1/M$. For many tokens it becomes $S_t(s)$ in closed form;
it rises at the end $s = 1$ until $t_crit$, and falls ever after. Checked: the rates on the law
itself (Monte Carlo at $t = 0$), the chain $e^(a t W)$ with the law's own $W$ for $N = 200$ and 400
against $S_t$ and $t_crit$ (extrapolated to $N = ∞$), and an ensemble of the full, nonlinear law ($N
= 16$).
"""

from __future__ import annotations

from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.sparse.linalg import expm_multiply
from scipy.special import iv

from tokenflock import ensemble
from tokenflock.dynamics import CausalBias
from tokenflock.observables import InnerProducts
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import (
    Claim,
    at_least,
    at_most,
    monte_carlo,
    near,
    near_relative,
)
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Uniform
from tokenflock.theory import middle_critical_time, pair_cosine, position_influence

SOURCE = "arXiv 2605.09213: lost in the middle"
CAPTION = (
    "See the influence of position $s$ on the last token (left; lines: closed form, dots: a chain"
    " of 400 tokens): the end counts more than the middle before $t_crit$, and no more after it;"
    " sixteen tokens of the full law (right), which do not stay uniform, show the end only."
)
BETA, SLOPE, M = 1.0, 1.0, 8.0
MODES = np.arange(1, 9)  # a_m t falls like e^(-m log m): eight are enough at beta = 1
PLACES = np.linspace(0.05, 0.95, 19)
DEPTHS = (0.5, 1.0, 2.0, 4.0)
SIZES = (200, 400)
FEW, DEEP = 16, 1.5  # tokens and depth of the full law


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    samples, repeats = scale.pick(quick=(100000, 40000), paper=(400000, 1000000))
    chains = [[_chain(n, t) for t in DEPTHS] for n in SIZES]
    chain = xr.Dataset(
        {
            "influence": (("n", "t", "s"), chains),
            "critical": ("n", [_critical(n) for n in SIZES]),
        },
        coords={"n": list(SIZES), "t": list(DEPTHS), "s": PLACES},
    )
    rates = _rates(samples)
    parts = {"chain": chain, "rates": rates, "full": _full(repeats, scale)}
    setting = (
        f"$β = {BETA:g}$, $λ = {SLOPE:g}$, $M = {M:g}$; chains of 200 and 400 tokens; the law:"
        f" {FEW} tokens, {samples} samples at $t = 0$, {repeats} systems to $t = {DEEP:g}$"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting}), **parts})


def _weights(n: int) -> np.ndarray:
    """The law's own w_jk."""
    with precision("float64"):
        return np.asarray(CausalBias(beta=BETA, slope=SLOPE).bias(jnp.full(n, 1 / n)))


def _row(W: np.ndarray, t: float) -> np.ndarray:
    """n times the last row of sum_m e^(-pi^2 m^2/(2 M^2)) (e^(a_m t W) - I)."""
    n = len(W)
    last = np.eye(n)[-1]
    total = np.zeros(n)
    for m in MODES:
        weight = np.exp(-((np.pi * m / M) ** 2) / 2)
        total += weight * (expm_multiply(m**2 * iv(m, BETA) * t * W.T, last) - last)
    return n * total


def _chain(n: int, t: float) -> np.ndarray:
    """The influence at the given places, by a spline through positions (k - 1/2)/n."""
    row = _row(_weights(n), t)[:-1]
    return CubicSpline((np.arange(n - 1) + 0.5) / n, row)(PLACES)


def _critical(n: int) -> float:
    """The depth at which the last two positions before the end count the same."""
    W = _weights(n)

    def rise(t: float) -> float:
        row = _row(W, t)
        return row[-2] - row[-3]

    return cast(float, brentq(rise, 0.5, 6.0, xtol=1e-10))


def _rates(samples: int) -> xr.Dataset:
    """d/dt of the sum over k of cos m(theta_N - theta_k) at uniform tokens: mean and error for
    m = 1, 2, 3.
    """
    law, degrees = CausalBias(beta=BETA, slope=SLOPE), jnp.arange(1, 4)
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, (samples, FEW))

    def speed(theta: jax.Array) -> jax.Array:
        x = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)
        along = jnp.stack([-x[:, 1], x[:, 0]], axis=-1)
        turn = jnp.sum(law.velocity(0.0, x, jnp.full(FEW, 1 / FEW)) * along, axis=-1)
        far, closing = theta[-1] - theta[:-1], turn[-1] - turn[:-1]
        return -jnp.sum(degrees[:, None] * jnp.sin(degrees[:, None] * far) * closing, axis=-1)

    with precision("float64"):
        values = np.asarray(jax.jit(jax.vmap(speed))(jnp.asarray(angle)))
    error = values.std(axis=0, ddof=1) / np.sqrt(samples)
    return xr.Dataset(
        {"mean": ("m", values.mean(axis=0)), "error": ("m", error)}, coords={"m": [1, 2, 3]}
    )


def _full(repeats: int, scale: Scale) -> xr.Dataset:
    """Mean cosine of the last token with each earlier one, and its chain."""
    result = ensemble(
        CausalBias(beta=BETA, slope=SLOPE),
        Uniform(n=FEW, d=2),
        repeats=repeats,
        t=DEEP,
        frames=2,
        observe=[InnerProducts()],
        progress=scale.progress,
    )
    W = _weights(FEW)
    chain = expm_multiply(iv(1, BETA) * DEEP * W.T, np.eye(FEW)[-1])
    return xr.Dataset(
        {
            "second": result.inner_products.values[-1, 1, 0],
            "second_error": result.inner_products_error.values[-1, 1, 0],
            "cosine": ("k", result.inner_products.values[-1, -1, :-1]),
            "error": ("k", result.inner_products_error.values[-1, -1, :-1]),
            "chain": ("k", chain[:-1]),
        },
        coords={"k": np.arange(1, FEW)},
    )


def _limit(chain: xr.Dataset, name: str) -> np.ndarray:
    """2 X_400 - X_200: errors of order 1/n drop out."""
    return (2 * chain[name].sel(n=SIZES[1]) - chain[name].sel(n=SIZES[0])).values


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    chain, full = data["chain"].to_dataset(), data["full"].to_dataset()
    figure, (left, right) = panels(1, 2, size=(3.9, 3.1))
    s = np.linspace(0.01, 1, 300)
    with look(left) as theme:
        for colour, t in zip(theme.palette, DEPTHS):
            left.plot(s, position_influence(s, t, BETA, SLOPE, M), color=colour, label=f"$t={t:g}$")
            left.plot(PLACES, chain.influence.sel(n=400, t=t), "o", color=colour, markersize=3.5)
        critical = float(middle_critical_time(BETA, SLOPE, M))
        left.set(yscale="log", xlabel="position $s$", ylabel="influence on the last token")
        left.set_title(rf"$t_\mathrm{{crit}}={critical:.3f}$ (dots: chains, lines: their limit)")
        left.legend(fontsize="small", ncols=2, loc="upper right")
    with look(right) as theme:
        right.errorbar(
            full.k,
            full.cosine,
            full.error,
            fmt="o",
            color=theme.palette[0],
            markersize=4,
            label="the law, one standard error",
        )
        right.plot(full.k, full.chain, color=theme.palette[1], label="its chain")
        right.set(xlabel="position $k$ of 16", ylabel="mean cosine with the last token")
        right.set_ylim(0, 1.35 * float(full.cosine.max()))
        right.legend(fontsize="small")
        right.set_title(f"The full law at $t={DEEP:g}$")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_rate_claims(data["rates"].to_dataset()),
        *_chain_claims(data["chain"].to_dataset()),
        *_full_claims(data["full"].to_dataset()),
    ]


def _rate_claims(rates: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"rate-{m}",
            f"of uniform tokens the sum over $k$ of $E cos {m}(θ_N − θ_k)$ grows at the rate"
            f" $a_{m} = {m}² I_{m}(β)$ under the law ($N = {FEW}$, $β = 1$)",
            "derived here: linear response of the law, $a_m$ as in arXiv 2605.09213",
            float(rates["mean"].sel(m=m)),
            monte_carlo(float(m**2 * iv(m, BETA)), float(rates.error.sel(m=m))),
            error=float(rates.error.sel(m=m)),
        )
        for m in (1, 2, 3)
    ]


def _chain_claims(chain: xr.Dataset) -> list[Claim]:
    exact = np.array([position_influence(PLACES, t, BETA, SLOPE, M) for t in DEPTHS])
    off = np.abs(_limit(chain, "influence") / exact - 1)
    critical = float(middle_critical_time(BETA, SLOPE, M))
    early, late = (chain.influence.sel(n=400, t=t).values for t in (1.0, 4.0))
    deep = chain.influence.sel(n=400, t=slice(1.0, None)).values
    lowest = int(np.argmin(early)) if np.isfinite(early).all() else 0
    fine = np.linspace(0.05, 0.95, 901)
    return [
        Claim(
            "influence",
            "the influence of position $s$ is $S_t(s)$ ($s = 0.05$ to 0.95, $t = 0.5$ to 4;"
            " chains of 200 and 400 tokens, extrapolated; greatest relative error)",
            "arXiv 2605.09213 (code); the chain is derived here",
            float(off.max()),
            at_most(1 / 400),
            note="errors of order $1/n$ drop out, those of order $1/n²$ times a logarithm stay",
        ),
        Claim(
            "critical",
            "the end ceases to count more than what comes before it at $t_crit ="
            f" {critical:.10f}$ (chains, extrapolated)",
            "arXiv 2605.09213 (code)",
            float(_limit(chain, "critical")),
            near_relative(critical, 1 / 400),
        ),
        Claim(
            "middle",
            "at $t = 1 < t_crit$ the least heard position lies inside, where $S_t$ is least: its"
            " place $s$ among 0.05, 0.1, ..., 0.95",
            SOURCE,
            float(PLACES[lowest]),
            near(float(fine[np.argmin(position_influence(fine, 1.0, BETA, SLOPE, M))]), 0.05),
        ),
        Claim(
            "end",
            "at $t = 1$ the end is heard more than the middle: $S(0.95)$ over the least influence",
            SOURCE,
            float(early[-1] / early.min()),
            near_relative(float(exact[1, -1] / exact[1].min()), 1 / 100),
        ),
        Claim(
            "beginning",
            "at $t = 4 > t_crit$ influence falls with the position throughout (greatest step)",
            SOURCE,
            float(np.diff(late).max()),
            at_most(0.0),
        ),
        Claim(
            "first",
            "from $t = 1$ on the beginning is heard more than the middle: $S(0.05)/S(0.5)$,"
            " the least",
            SOURCE,
            float((deep[:, 0] / deep[:, 9]).min()),
            at_least(1.0),
            note="not at small $t$, where the bias alone rules: $S_t ~ t e^(λs)$",
        ),
    ]


def second_cosine(t: float) -> float:
    """E cos(theta_2 - theta_1) at depth t: the first token stays, and the cosine of the second
    obeys USA's equation for two tokens in the clock beta t.
    """
    angle = np.pi * (np.arange(2000) + 0.5) / 2000
    return float(np.mean(pair_cosine(BETA * t, np.cos(angle), BETA, unnormalised=True)))


def _full_claims(full: xr.Dataset) -> list[Claim]:
    cosine, chain = full.cosine.values, full.chain.values
    end, middle = slice(12, 15), slice(5, 11)
    error = np.sqrt((full.error[end] ** 2).sum() / 9 + (full.error[middle] ** 2).sum() / 36)
    first = [float(v[0] - v[middle].mean()) for v in (cosine, chain)]
    alone = float(full.second_error)
    return [
        Claim(
            "second",
            "under the full law the second token is at the mean cosine"
            f" ${second_cosine(DEEP):.5f}$ to the first at $t = {DEEP:g}$",
            "derived here: USA of two tokens, one of which stays, averaged over a uniform angle",
            float(full.second),
            monte_carlo(second_cosine(DEEP), alone, slack=1e-4),
            error=alone,
            note=f"the chain would say ${iv(1, BETA) * DEEP:.4f}$: first tokens are soon beyond"
            " its linear response",
        ),
        Claim(
            "full-end",
            f"under the full law ($N = {FEW}$, $t = {DEEP:g}$) the last token is closer to"
            " the three before it than to the middle six: difference of mean cosines",
            SOURCE,
            float(cosine[end].mean() - cosine[middle].mean()),
            at_least(0.0),
            error=float(error),
            note=f"the first less the middle six: ${first[0]:.3f}$, while the chain says"
            f" ${first[1]:.3f}$; so few tokens do not show the beginning",
        ),
    ]

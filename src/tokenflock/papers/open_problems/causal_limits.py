"""Causal attention with a simple top eigenvalue: a token can stay away from the top eigenvector.

Question: the first token of causal attention follows $x' = P_x V x$ alone and ends at $±ξ$, the top
eigenvector of $V$. Do all others end at $±ξ$ too, for almost every start, whatever $Q$ and $K$ are?
(A conjecture of arXiv 2411.04990, known here from a secondary source.) Method: two tokens on the
circle, $V = diag(1, v)$, $Q = K = diag(0, √b)$, $β = 1$. With the first token at $ξ$ and the second
at the angle $θ$,

    $θ' = −sin(θ) (e^(−b sin^2 θ) + (1−v) cos θ)/(1 + e^(−b sin^2 θ))$.

At $−ξ$ the bracket is $v > 0$: $−ξ$ repels. For $b = 4$, $v = 0.4$ it is negative at 135 degrees,
so that there is a zero between, which attracts (derived here). The state, its two eigenvalues and
its basin are computed and compared with runs. Verdict: refuted in this form.
"""

from __future__ import annotations

from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.dynamics import Causal
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array

SOURCE = "Question 5: where causal tokens end"
CAPTION = (
    "See an angle of 157° (full dot) that attracts the second token from all starts beyond 92°"
    " (ring), nearly half of the circle, while $−ξ$, at 180°, repels: it never comes to $±ξ$."
)
CONJECTURE = "a conjecture of arXiv 2411.04990 (from a secondary source); refuted here in this form"
DERIVED = "derived here"
B, v = 4.0, 0.4
END = 120.0


def law() -> Causal:
    """Two tokens of this law are enough."""
    Q = np.diag([0.0, np.sqrt(B)])
    return Causal(beta=1.0, Q=Q, K=Q, V=np.diag([1.0, v]))


def bracket(theta: float) -> float:
    """What the sign of -theta' is on (0, pi)."""
    return float(np.exp(-B * np.sin(theta) ** 2) + (1 - v) * np.cos(theta))


def _root(low: float, high: float) -> float:
    return cast(float, brentq(bracket, low, high, xtol=1e-14))


def resting() -> float:
    """The angle that attracts."""
    return _root(0.75 * np.pi, np.pi)


def barrier() -> float:
    """The angle between its basin and that of xi."""
    return _root(0.5 * np.pi, 0.75 * np.pi)


def eigenvalues() -> np.ndarray:
    """Of the resting state: of the first token, and of the second."""
    theta = resting()
    sine, cosine, own = np.sin(theta), np.cos(theta), np.exp(-B * np.sin(theta) ** 2)
    slope = -2 * B * sine * cosine * own - (1 - v) * sine
    return np.array([v - 1, -sine * slope / (1 + own)])


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    count = scale.pick(quick=200, paper=20_000)
    with precision("float64"):
        end = jax.jit(jax.vmap(flock.flow_map(law(), t=END)))
        angles = (np.arange(count) + 0.5) * np.pi / count
        beside = np.asarray(end(jnp.stack([_unit(0 * angles), _unit(angles)], axis=1)))
        both = np.random.default_rng(0).uniform(0, 2 * np.pi, (2, count))
        anywhere = np.asarray(end(jnp.stack([_unit(both[0]), _unit(both[1])], axis=1)))
        path = flock.simulate(law(), np.asarray(_unit(np.array([1.2, 2.2]))), t=20.0)
        speeds = np.linalg.eigvals(np.asarray(jax.jacfwd(_turning)(jnp.array([0.0, resting()]))))
    parts = {
        "grid": xr.Dataset({"end": ("angle", np.abs(_angle(beside)))}, {"angle": angles}),
        "random": xr.Dataset({"end": ("start", np.abs(_angle(anywhere)))}),
        "rest": xr.Dataset({"eigenvalue": ("token", np.sort(np.real(speeds)))}),
        "path": xr.Dataset({"x": path.x}),
    }
    setting = f"$n = 2$, $d = 2$, $V = diag(1, {v})$, $Q = K = diag(0, 2)$, $β = 1$, {count} starts"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _unit(angle: Array | np.ndarray) -> jax.Array:
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def _turning(angles: jax.Array) -> jax.Array:
    """The speeds of both angles."""
    x = _unit(angles)
    velocity = law().velocity(0.0, x, jnp.full(2, 0.5))
    return jnp.sum(velocity * jnp.stack([-x[:, 1], x[:, 0]], axis=1), axis=1)


def _angle(x: np.ndarray) -> np.ndarray:
    """Of the second token to the end of the first, which is +-xi."""
    sign = np.sign(x[:, :1, 0])
    return np.arctan2(x[:, 1, 1], x[:, 1, 0] * sign[:, 0])


def _elsewhere(angle: xr.DataArray) -> xr.DataArray:
    """Whether a token ended neither at xi nor at -xi."""
    return (angle > 1e-3) & (angle < np.pi - 1e-3)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    theta, grid = np.linspace(0, np.pi, 400), data["grid"].to_dataset()
    speed = [-np.sin(a) * bracket(a) / (1 + np.exp(-B * np.sin(a) ** 2)) for a in theta]
    figure, axes = panels(1, 2, size=(3.4, 2.7))
    with look(figure) as theme:
        axes[0].axhline(0, color=theme.soft, lw=0.8)
        axes[0].plot(np.degrees(theta), speed, color=theme.palette[0])
        axes[0].plot(np.degrees(resting()), 0, "o", color=theme.ink)
        axes[0].plot(np.degrees(barrier()), 0, "o", color=theme.ink, markerfacecolor="none")
        axes[0].set(xlabel="angle to $\\xi$ in degrees", ylabel="its speed", xticks=(0, 90, 180))
        axes[0].set_title("The second token, the first at $\\xi$")
        axes[1].plot(np.degrees(grid.angle), np.degrees(grid.end), ".", color=theme.palette[0])
        for end in (0, 180):
            axes[1].axhline(end, color=theme.soft, lw=0.8, ls="--")
        axes[1].set(xlabel="start in degrees", ylabel="end in degrees")
        axes[1].set(xticks=(0, 90, 180), yticks=(0, 90, 180))
        axes[1].set_title("Where it ends ($\\pm\\xi$ dashed)")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    grid, random = data["grid"].to_dataset(), data["random"].to_dataset()
    away = grid.end.where(_elsewhere(grid.end), drop=True)
    speeds = data["rest"].eigenvalue.values
    share, count = float(_elsewhere(random.end).mean()), random.sizes["start"]
    return [
        Claim(
            "rest",
            "with the first token at $ξ$ the second rests at the root of"
            f" $e^{{−4 sin²(θ)}} = −0.6 cos(θ)$, {np.degrees(resting()):.3f}° from $ξ$ (greatest"
            " error over the starts that end there)",
            DERIVED,
            float(np.abs(away - resting()).max()) if away.size else np.nan,
            at_most(1e-6),
        ),
        Claim(
            "stable",
            "that state attracts: its eigenvalues are both negative (the greater one)",
            CONJECTURE,
            float(speeds.max()),
            at_most(0.0),
            note=f"closed form: {eigenvalues()[0]:g} and {eigenvalues()[1]:.6f}",
        ),
        Claim(
            "eigenvalues",
            "the eigenvalues are those of the closed form (greatest error)",
            DERIVED,
            float(np.abs(speeds - np.sort(eigenvalues())).max()),
            at_most(1e-10),
        ),
        Claim(
            "basin",
            "with the first token at $ξ$ it draws in all starts beyond the barrier: share of the"
            " circle",
            DERIVED,
            float(_elsewhere(grid.end).mean()),
            near(1 - barrier() / np.pi, 1 / grid.sizes["angle"]),
            note=f"the barrier is at {np.degrees(barrier()):.3f}°",
        ),
        Claim(
            "share",
            "both tokens uniform on the circle: share of starts whose second token ends neither at"
            " $ξ$ nor at $−ξ$",
            CONJECTURE,
            share,
            at_least(1 / count),
            error=float(np.sqrt(share * (1 - share) / count)),
            note=f"verdict: refuted in this form; {count} starts, of which one would do: a state"
            " that attracts draws in a set of positive measure",
        ),
    ]

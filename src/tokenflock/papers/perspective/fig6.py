"""The curvature $g$ of the interaction on the circle, and its zeros.

Two tokens at angles 0 and $τ$ follow unnormalised attention. The derivative of the one's speed by
the other's angle, taken by automatic differentiation of the law of motion, is $g(τ) / 2$ with $g(τ)
= (cos τ − β sin^2 τ) e^(β cos τ)$. $g$ is positive only for $|τ| < τ*$, which shrinks like
$β^(−1/2)$: tokens further apart than $τ*$ pull a critical point off balance. Zeros and minima of
the measured $g$ are compared with the closed form $cos τ* = (−1 + √(1 + 4 β^2)) / (2 β)$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import OptimizeResult, brentq, minimize_scalar

from tokenflock.dynamics import Unnormalised
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.theory import attraction_range, curvature_minimum, interaction_curvature

SOURCE = "Figure 6"
CAPTION = (
    "See tokens nearer than $τ*$ attract more the nearer they are ($g > 0$): $g$, drawn as a"
    " share of its peak $e^β$, has its zeros at $±τ*$ (dots), which close in as $β$ grows."
)
BETAS = (2.0, 6.0)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    tau = np.linspace(-3.2, 3.2, 1281)
    g = [curvature(beta) for beta in BETAS]
    zeros = [brentq(function, 0.1, np.pi / 2, xtol=1e-14) for function in g]
    lowest = [_minimum(function) for function in g]
    return xr.Dataset(
        {
            "g": (("beta", "tau"), [function(tau) for function in g]),
            "zero": ("beta", zeros),
            "minimum": ("beta", [float(minimum.fun) for minimum in lowest]),
            "minimum_at": ("beta", [float(minimum.x) for minimum in lowest]),
        },
        coords={"beta": list(BETAS), "tau": tau},
        attrs={"setting": "$β = 2$ and 6, $|τ| < 3.2$, two tokens on the circle"},
    )


def _minimum(function: Callable[[Any], Any]) -> OptimizeResult:
    options = {"xatol": 1e-10}
    least = minimize_scalar(function, bounds=(0.2, 2), method="bounded", options=options)
    return cast(OptimizeResult, least)


def curvature(beta: float) -> Callable[[Any], Any]:
    """g as the law of motion has it, a function of tau."""
    law = Unnormalised(beta=beta)

    def speed(theirs: Array, mine: Array) -> Array:
        x = jnp.stack(
            [jnp.cos(jnp.stack([mine, theirs])), jnp.sin(jnp.stack([mine, theirs]))], axis=1
        )
        forward = jnp.stack([-jnp.sin(mine), jnp.cos(mine)])
        return law.velocity(0.0, x, jnp.full(2, 0.5))[0] @ forward

    slope = jax.jit(jax.vmap(jax.grad(speed), in_axes=(0, None)))

    def g(tau: Any) -> Any:
        with precision("float64"):
            values = 2 * np.asarray(
                slope(jnp.atleast_1d(jnp.asarray(tau, float)), jnp.asarray(0.0))
            )
        return values if np.ndim(tau) else float(values[0])

    return g


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(4.2, 3.0))
    with look(ax) as theme:
        ax.axhline(0, color=theme.faint, linewidth=0.8, zorder=0)
        for colour, dash, beta in zip(theme.palette, ("-", "--"), data.beta.values):
            curve = data.sel(beta=beta)
            zero = float(curve.zero)
            ax.plot(
                data.tau,
                curve.g / np.exp(beta),
                dash,
                color=colour,
                label=rf"$\beta={beta:g}$,  $\tau^*={zero:.4f}$",
            )
            ax.plot([-zero, zero], [0, 0], "o", color=colour, markersize=4, clip_on=False)
        ax.set(xlim=(-np.pi, np.pi), ylim=(-0.62, 1.08), xlabel=r"$\tau$ (rad)")
        ax.set_ylabel(r"$g(\tau)\,/\,e^{\beta}$")
        ax.set_xticks(
            np.pi * np.array([-1, -0.5, 0, 0.5, 1]),
            [r"$-\pi$", r"$-\pi/2$", "0", r"$\pi/2$", r"$\pi$"],
        )
        ax.legend(loc="upper right")
        ax.set_title(r"$g(\tau)=(\cos\tau-\beta\sin^2\tau)\,e^{\beta\cos\tau}$")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    return [claim for beta in data.beta.values for claim in _claims(data.sel(beta=beta), beta)]


def _claims(curve: xr.Dataset, beta: float) -> list[Claim]:
    exact, formula = curvature_minimum(beta), interaction_curvature(curve.tau.values, beta)
    window = ", outside the printed window" if exact.value < -3 else ""
    return [
        Claim(
            f"formula-{beta:g}",
            f"at $β = {beta:g}$, $g(τ) = (cos τ − β sin² τ) e^(β cos τ)$ is twice ($n = 2$)"
            " the derivative of the speed of one of two tokens under USA by the other's"
            " angle",
            "Figure 6, (B.2)",
            float(abs(curve.g - formula).max()) / np.exp(beta),
            at_most(1e-12),
            note="largest deviation over $|τ| < 3.2$, as a share of $g(0) = e^β$",
        ),
        Claim(
            f"zero-{beta:g}",
            f"at $β = {beta:g}$ the function $g$ changes sign at $τ*$ with $β sin² τ* = cos τ*$",
            "Figure 6, (B.2)",
            float(curve.zero),
            near(attraction_range(beta), 1e-9),
        ),
        Claim(
            f"minimum-{beta:g}",
            f"at $β = {beta:g}$ the function $g$ is smallest at $τ = {float(exact.tau):.6f}$",
            "Figure 6",
            float(curve.minimum_at),
            near(exact.tau, 1e-6),
            note=f"$g$ there is ${float(curve.minimum):.6g}${window}",
        ),
    ]

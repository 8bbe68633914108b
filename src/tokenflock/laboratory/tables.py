"""Theory for a page: bounds of the energy and growth rates, tabulated by the library, and the
cosine of orthogonal tokens, as programs of its own equations.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.page import formula
from tokenflock.shapes import Time, Tokens, Weights
from tokenflock.solvers.rk4 import RK4
from tokenflock.spaces import Euclidean, Space
from tokenflock.theory import dirac_energy, polygon_growth, uniform_energy
from tokenflock.theory._family import layer, speed

BETAS = np.round(np.concatenate([np.arange(0.05, 2, 0.05), np.arange(2, 16.01, 0.1)]), 10)
CORNERS = range(2, 9)  # clusters on the circle


def energies(d: int) -> dict[str, Any]:
    """The logarithm of the energy of uniform tokens and of one point, over beta."""
    betas = BETAS.tolist()
    return {
        "uniform": {"beta": betas, "log": _short(np.log(uniform_energy(BETAS, d)))},
        "dirac": {"beta": betas, "log": _short(np.log(dirac_energy(BETAS)))},
    }


def polygons() -> dict[str, Any]:
    """The logarithm of the fastest growth rate about equal clusters at the corners of a regular
    polygon on the circle, over beta, for each number of them.
    """
    rates = {str(n): polygon_growth(n, BETAS) for n in CORNERS}
    return {n: {"beta": BETAS.tolist(), "log": _short(np.log(rate))} for n, rate in rates.items()}


class _Cosine(Dynamics):
    """The common cosine of equiangular tokens as a law of one number."""

    n: float
    beta: float

    @property
    def space(self) -> Space:
        return Euclidean()

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return speed(x, self.n, self.beta, jnp.exp)


def cosines() -> dict[str, Any]:
    """One step of the common cosine of tokens that begin orthogonal, as programs of a page: of the
    flow, by RK4, and of the layer map.
    """

    def flow(gamma, count, beta, h):
        law, one = _Cosine(count, beta), jnp.ones(1)
        return RK4(h=h).step(law, jnp.zeros(()), gamma[None, None], one, jax.random.key(0))[0, 0]

    def layered(gamma, count, beta, h):
        return 1 - layer(1 - gamma, count, beta, h, jnp.exp)

    names = ("gamma", "count", "beta", "h")
    return {"flow": formula(flow, names), "layer": formula(layered, names)}


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in np.asarray(values)]

"""The law of a symmetric matrix D at one weighted configuration: float64 NumPy in and out."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics import Burger
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.papers.perspective._pointwise import circle, velocity
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array, Scalar


def energy(D: np.ndarray, x: np.ndarray, w: np.ndarray) -> float:
    """E = sum_ij w_i w_j e^{<x_i, D x_j>}, as the law counts it."""
    with precision("float64"):
        return float(
            _energy(*cast((Burger(D=np.asarray(D)), np.asarray(x), np.asarray(w)), "float64"))
        )


def speed(D: np.ndarray, x: np.ndarray, w: np.ndarray, normalised: bool = False) -> np.ndarray:
    """|dx_i/dt| of each token."""
    return np.linalg.norm(velocity(Burger(D=D, normalised=normalised), x, w), axis=1)


def hessian(D: np.ndarray, theta: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Second derivatives of E by the angles of tokens on the circle, from the law: dtheta_i/dt =
    (1/2 w_i) dE/dtheta_i.
    """
    with precision("float64"):
        slopes = _slopes(
            *cast((Burger(D=np.asarray(D)), np.asarray(theta), np.asarray(w)), "float64")
        )
        return 2 * np.asarray(w)[:, None] * np.asarray(slopes)


def growth(D: np.ndarray, p: float = 0.5, axis: int = 0, parts: int = 1) -> float:
    """Largest eigenvalue of the Hessian at masses p and 1 - p at the two ends of an axis of D, each
    cut into some parts.
    """
    theta, w = np.array([0, np.pi]) + axis * np.pi / 2, np.array([p, 1 - p]) / parts
    H = hessian(D, np.repeat(theta, parts), np.repeat(w, parts))
    return float(np.linalg.eigvalsh((H + H.T) / 2).max())


@eqx.filter_jit
def _energy(law: Burger, x: Array, w: Array) -> Scalar:
    return law.energy(x, w)


@eqx.filter_jit
def _slopes(law: Dynamics, theta: Array, w: Array) -> Array:
    def turning(angles: Array) -> Array:
        x = circle(angles)
        v = law.velocity(jnp.zeros(()), x, w)
        return jnp.sum(v * jnp.stack([-x[:, 1], x[:, 0]], axis=-1), axis=-1)

    return jax.jacfwd(turning)(theta)

"""The library's fields and energies at given configurations, with their derivatives: float64 and
NumPy in, NumPy out.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.place import on_cpu
from tokenflock.observables import Energy
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array, Scalar


def velocity(law: Dynamics, x: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """dx/dt of all tokens, (n, d)."""
    return _call(_velocity, law, x, equal(x) if w is None else w)


def velocity_jacobian(law: Dynamics, x: np.ndarray) -> np.ndarray:
    """Derivative of the velocity along tangent directions, (n d, n d); zero along the normals.

    For USA with equal weights, at rest, it is symmetric: n times the Hessian of the energy on the
    product of spheres.
    """
    n, d = np.shape(x)
    blocks = _call(_velocity_jacobian, law, x, equal(x))
    tangent = np.eye(d) - x[:, :, None] * x[:, None, :]
    return np.einsum("iajb,jbc->iajc", blocks, tangent).reshape(n * d, n * d)


def turning(law: Dynamics, theta: np.ndarray) -> np.ndarray:
    """dtheta/dt of tokens on the circle, (n,)."""
    return _call(_turning, law, theta, equal(theta))


def turning_jacobian(law: Dynamics, theta: np.ndarray) -> np.ndarray:
    """Derivative of dtheta/dt with respect to the angles, (n, n)."""
    return _call(_turning_jacobian, law, theta, equal(theta))


def energy(x: np.ndarray, beta: float, w: np.ndarray | None = None) -> float:
    """E_beta of (3.5); the weights need not sum to one."""
    return float(_call(_energy, Energy(beta=beta), x, equal(x) if w is None else w))


def energies(x: np.ndarray, beta: float, w: np.ndarray | None = None) -> np.ndarray:
    """E_beta of many configurations (many, n, d), each with its weights."""
    w = np.broadcast_to(equal(x[0]), x.shape[:2]) if w is None else w
    return _call(_energies, Energy(beta=beta), x, w)


def energy_by_weight(x: np.ndarray, beta: float, w: np.ndarray) -> np.ndarray:
    """dE_beta/dw_i, the first variation of the energy at each token, (n,)."""
    return _call(_energy_by_weight, Energy(beta=beta), x, w)


def energy_hessian(place: Callable, at: np.ndarray, beta: float, *fixed: np.ndarray) -> np.ndarray:
    """Second derivatives of E_beta for equal weights, with respect to parameters that `place(at,
    *fixed)` turns into tokens.
    """
    return _call(_energy_hessian, Energy(beta=beta), place, at, *fixed)


def circle(theta: Any) -> Any:
    """Tokens on the circle at these angles, (n, 2), by JAX or NumPy as the angles are."""
    on = jnp if isinstance(theta, jax.Array) else np
    return on.stack([on.cos(theta), on.sin(theta)], axis=-1)


def zero(function: Callable[[float], Any], low: float, high: float, xtol: float) -> float:
    """Where a function of one number changes its sign, by Brent's method."""
    return typing.cast(float, brentq(function, low, high, xtol=xtol))


def unit(x: np.ndarray) -> np.ndarray:
    """Vectors, along the last axis, divided by their lengths."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def equal(tokens: np.ndarray) -> np.ndarray:
    """Equal weights that sum to one."""
    return np.full(len(tokens), 1 / len(tokens))


def _call(function: Callable, *arguments: Any) -> np.ndarray:
    with precision("float64"), on_cpu():
        return np.asarray(function(*(cast(argument, "float64") for argument in arguments)))


@eqx.filter_jit
def _velocity(law: Dynamics, x: Array, w: Array) -> Array:
    return law.velocity(jnp.zeros(()), x, w)


@eqx.filter_jit
def _velocity_jacobian(law: Dynamics, x: Array, w: Array) -> Array:
    return jax.jacfwd(lambda tokens: _velocity(law, tokens, w))(x)


@eqx.filter_jit
def _turning(law: Dynamics, theta: Array, w: Array) -> Array:
    x = circle(theta)
    return jnp.sum(_velocity(law, x, w) * jnp.stack([-x[:, 1], x[:, 0]], axis=-1), axis=-1)


@eqx.filter_jit
def _turning_jacobian(law: Dynamics, theta: Array, w: Array) -> Array:
    return jax.jacfwd(lambda angle: _turning(law, angle, w))(theta)


@eqx.filter_jit
def _energy(measured: Energy, x: Array, w: Array) -> Scalar:
    return measured.measure(x, w)


@eqx.filter_jit
def _energies(measured: Energy, x: Array, w: Array) -> Scalar:
    return jax.vmap(measured.measure)(x, w)


@eqx.filter_jit
def _energy_by_weight(measured: Energy, x: Array, w: Array) -> Array:
    return jax.grad(lambda weights: measured.measure(x, weights))(w)


@eqx.filter_jit
def _energy_hessian(measured: Energy, place: Callable, at: Array, *fixed: Array) -> Array:
    def value(parameters: Array) -> Scalar:
        x = place(parameters, *fixed)
        return measured.measure(x, jnp.full(len(x), 1 / len(x)))

    return jax.hessian(value)(at)

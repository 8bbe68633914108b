"""Two functions whose gradients are written out, because those that are derived are slow on CPUs.
The tests hold them to finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tokenflock.shapes import Array

EPSILON = 1e-5  # added to the variance by layer norms


@jax.custom_vjp
def linear(x: Array, W: Array) -> Array:
    """x W for tokens in rows, (..., d) by (d, m).

    The derived gradient would turn both factors of x^T g around first.
    """
    return x @ W


def _linear_back(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, W = kept
    return g @ W.T, x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])


linear.defvjp(lambda x, W: (x @ W, (x, W)), _linear_back)


@jax.custom_vjp
def layer_norm(x: Array, gain: Array) -> Array:
    """Each token minus its mean, on the sphere of radius sqrt(width), times a gain for each
    coordinate.

        u = (x - mean x) / sqrt(var x + 1e-5),   y = gain u

    >>> import jax.numpy as jnp
    >>> y = layer_norm(jnp.array([[3.0, 5.0, 10.0]]), jnp.ones(3))
    >>> round(float(jnp.sum(y**2)), 4)
    3.0
    """
    return _normed(x, gain)[0]


def _normed(x: Array, gain: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    x = x - _mean(x)
    scale = jax.lax.rsqrt(_mean(x * x) + EPSILON)
    return x * scale * gain, (x * scale, scale, gain)


def _normed_back(kept: tuple[Array, Array, Array], g: Array) -> tuple[Array, Array]:
    u, scale, gain = kept
    h = g * gain
    rows = (g * u).reshape(-1, u.shape[-1])  # (batch time, width)
    return scale * (h - _mean(h) - u * _mean(h * u)), jnp.ones(len(rows), u.dtype) @ rows


layer_norm.defvjp(_normed, _normed_back)


def _mean(x: Array) -> Array:
    """The mean over coordinates, (..., 1), as a product: CPUs add rows up faster that way."""
    return x @ jnp.full((x.shape[-1], 1), 1 / x.shape[-1], x.dtype)

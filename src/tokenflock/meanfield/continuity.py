"""The continuity equation of a law of motion, in weak form.

    d/dt int f phi = int f X[f] . grad phi + (s^2/2) int f Lap phi
    for every test function phi

Letters: f the density, X[f] the velocity of the law at the measure f, s its noise. With orthonormal
functions phi_k of a grid, f = sum_k a_k phi_k and da_k/dt = sum_i g_i f_i U_i phi_k'(node_i) -
(s^2/2) k(k+d-2) a_k. Mass is a_0, whose slope is exactly 0.

The velocity is the law's own: the nodes with their masses are weighted tokens, and a quadrature
rule that integrates the kernel to rounding makes their sum the integral. For a measure symmetric
about the axis e of S^(d-1), a point q in the plane of e and e' sees a ring of latitude s only
through c = <direction in the ring, e'>, whose law has density (1-c^2)^((d-4)/2): so the ring is a
few Gauss nodes in R^3, whatever d. Source: (3.1)-(3.4) of arXiv 2312.10794.
"""

from __future__ import annotations

import typing
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.dynamics._harmonics import degrees
from tokenflock.dynamics._kernels import log_sum_exp
from tokenflock.dynamics.dynamics import AttentionLaw, Dynamics, MeanField
from tokenflock.dynamics.fast import Fast
from tokenflock.dynamics.noisy import Noisy
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.sinkhorn import Sinkhorn
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.meanfield.grids import Circle, Grid, gauss
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array, Scalar, Time
from tokenflock.spaces import Sphere

Values = Float[Array, " nodes"]
Modes = Float[Array, " modes"]


class Tables(NamedTuple):
    """A grid as arrays for JAX.

    On latitudes `rings` holds the Gauss nodes and weights of a ring.
    """

    angle: Values
    weights: Values
    basis: Float[Array, "nodes modes"]
    slope: Float[Array, "nodes modes"]
    laplace: Modes
    rings: Float[Array, "2 ring"] | None

    @property
    def ring(self) -> Float[Array, "2 ring"]:
        """The nodes and weights of a ring, on latitudes."""
        if self.rings is None:
            raise ValueError("the circle has no rings")
        return self.rings


def check(dynamics: Dynamics, grid: Grid) -> None:
    """Refuse laws that do not act through a measure on this grid."""
    law, name = core(dynamics), type(dynamics).__name__
    require(
        law.exchangeable,
        "dynamics",
        "a law that acts through the measure of its tokens",
        name,
        "e.g. SelfAttention",
    )
    require(
        isinstance(law.space, Sphere), "dynamics", "a law on the sphere", name, "e.g. SelfAttention"
    )
    require(
        law.particles is None,
        "dynamics",
        "a law for any number of tokens",
        name,
        "e.g. SelfAttention",
    )
    require(
        law.dimension in (None, grid.d),
        "d",
        f"{law.dimension}, as {name} has it",
        grid.d,
        f"write d={law.dimension}",
    )
    if grid.d > 2:
        fits = isinstance(law, (AttentionLaw, Sinkhorn, Fast)) and law.isotropic
        require(
            fits,
            "dynamics",
            "SelfAttention, Unnormalised, Sinkhorn or one of them with noise, for d >= 3",
            name,
        )


def core(dynamics: Dynamics) -> Dynamics:
    """The law without its noise."""
    return dynamics.base if isinstance(dynamics, Noisy) else dynamics


def tables(dynamics: Dynamics, grid: Grid) -> Tables:
    """Everything that the right-hand side needs of a grid.

    Call inside `precision('float64')`, with the law as written.
    """
    rings = None
    if not isinstance(grid, Circle):
        law = core(dynamics)
        beta = 1.0 if law.inverse_temperature is None else law.inverse_temperature
        rings = jnp.asarray(
            gauss(degrees(beta if concrete(beta) else 1.0, 1e-16) // 2 + 2, grid.d - 4)
        )
    basis, slopes = (jnp.asarray(table) for table in grid.tables)
    angle, weights = jnp.asarray(grid.coordinate), jnp.asarray(grid.weights)
    return Tables(angle, weights, basis, slopes, jnp.asarray(grid.laplace), rings)


def velocity(dynamics: Dynamics, t: Time, grid: Tables, f: Values) -> Values:
    """X[f] at the nodes: d theta/dt on the circle, d cos(latitude)/dt on S^(d-1)."""
    return (
        _around(dynamics, t, grid, f) if grid.rings is None else _along(core(dynamics), t, grid, f)
    )


def slope(dynamics: Dynamics, t: Time, grid: Tables, a: Modes) -> Modes:
    """da/dt."""
    f = grid.basis @ a
    drift = grid.slope.T @ (grid.weights * f * velocity(dynamics, t, grid, f))
    if not dynamics.noisy:
        return drift
    s = dynamics.diffusion(t, circle_tokens(grid), grid.weights * f)
    return drift - 0.5 * s**2 * grid.laplace * a


def circle_tokens(grid: Tables) -> Float[Array, "nodes 2"]:
    """The nodes of the circle as unit vectors."""
    return jnp.stack([jnp.cos(grid.angle), jnp.sin(grid.angle)], axis=-1)


def _around(dynamics: Dynamics, t: Time, grid: Tables, f: Values) -> Values:
    x = circle_tokens(grid)
    v = dynamics.velocity(t, x, grid.weights * f)
    return x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]


def _along(law: Dynamics, t: Time, grid: Tables, f: Values) -> Values:
    u, c = jnp.cos(grid.angle), jnp.sin(grid.angle)
    q = jnp.stack([c, jnp.zeros_like(c), u], axis=-1)
    w = grid.weights * f
    if isinstance(
        law, Sinkhorn
    ):  # attention e^{beta <q, y>} u(y): softmax attention to tokens whose masses are scaled by u
        w = w * jnp.exp(ring_potential(law, grid, w))
    p, share = grid.ring
    ring = jnp.stack([p, jnp.sqrt(1 - p**2)], axis=-1)
    # (nodes, ring, 3)
    y = jnp.concatenate(
        [c[:, None, None] * ring, jnp.broadcast_to(u[:, None, None], (len(u), len(p), 1))], axis=-1
    )
    field = _plain(law).field(t, q, y.reshape(-1, 3), jnp.outer(w, share).ravel())
    return (field - jnp.sum(field * q, axis=-1, keepdims=True) * q)[:, 2]


def _plain(law: Dynamics) -> MeanField:
    """The law whose field is summed over rings; `check` lets no other than these through."""
    if isinstance(law, Sinkhorn):
        return SelfAttention(beta=law.beta, repulsive=law.repulsive)
    require(isinstance(law, MeanField), "dynamics", "a law with a field", type(law).__name__)
    return typing.cast(MeanField, law)


def ring_kernel(beta: Scalar, grid: Tables) -> Float[Array, "nodes nodes"]:
    """log of the mean of e^{beta <x, y>} over two rings."""
    u, c = jnp.cos(grid.angle), jnp.sin(grid.angle)
    p, share = grid.ring
    logits = beta * (jnp.outer(u, u)[:, :, None] + jnp.outer(c, c)[:, :, None] * p)
    return log_sum_exp(logits, share)


def ring_potential(law: Sinkhorn, grid: Tables, w: Values) -> Values:
    """log u at the nodes, as `Sinkhorn.potential` has it at tokens."""
    S = ring_kernel(law.beta, grid)
    return jax.lax.fori_loop(
        0, law.rounds, lambda _, f: 0.5 * (f - log_sum_exp(S + f, w)), -0.5 * log_sum_exp(S, w)
    )


def drift(dynamics: Dynamics, density: np.ndarray, grid: Grid) -> np.ndarray:
    """The velocity of the mean field at the nodes of a grid, for a density relative to the uniform
    one.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.meanfield import Ripple, grid
    >>> circle = grid(2, 32)
    >>> # towards the crest at 0
    >>> bool(drift(SelfAttention(beta=1.0), Ripple(k=1, amplitude=0.5).on(circle), circle)[8] < 0)
    True
    """
    check(dynamics, grid)
    with precision("float64"):
        law = cast(dynamics, "float64")
        return np.asarray(
            velocity(law, jnp.zeros(()), tables(dynamics, grid), jnp.asarray(density))
        )

"""Derivatives of laws and of runs on the tangent spaces of all tokens."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import differentiable
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.solver import FixedStep, Solver

Vectors = Float[Array, "k n d"]


def restricted(
    derivative: Float[Array, "n d n d"], before: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """A derivative in R^d as a matrix from one tangent space to another."""
    inside = np.einsum("iap,iajb,jbq->ipjq", after, np.asarray(derivative), before)
    size = before.shape[0] * before.shape[2]
    return inside.reshape(size, size)


@eqx.filter_jit
def of_velocity(law: Dynamics, x: Tokens, w: Weights, t: Time) -> tuple[Tokens, Array]:
    """(velocity, its derivative) at tokens x."""
    return law.velocity(t, x, w), jax.jacfwd(lambda y: law.velocity(t, y, w))(x)


@eqx.filter_jit
def of_map(
    law: Dynamics, solver: Solver, x: Tokens, w: Weights, t: Time, steps: int
) -> tuple[Tokens, Array]:
    """(image, derivative) of the map over a time t, which takes so many fixed steps."""

    how = differentiable.How(forward=True, checkpoint=False)

    def phi(x: Tokens) -> Tokens:
        return differentiable.advanced(law, solver, x, w, t, steps, jax.random.key(0), how)

    return phi(x), jax.jacfwd(phi)(x)


@eqx.filter_jit
def stretch(
    law: Dynamics,
    solver: FixedStep,
    x: Tokens,
    w: Weights,
    vectors: Vectors,
    first: Array,
    key: Key[Array, ""],
    every: int,
    blocks: int,
) -> tuple[Tokens, Vectors, Float[Array, "blocks k"]]:
    """Tokens and tangent vectors carried along, the vectors made orthonormal after every so many
    steps, and the logarithm of what each was stretched by in each block.
    """

    def steps(x: Tokens, begin: Array) -> Tokens:
        def advance(k, y):
            step = begin + k
            time = step.astype(x.dtype) * solver.h
            return solver.step(law, time, y, w, jax.random.fold_in(key, step))

        return jax.lax.fori_loop(0, every, advance, x)

    def block(carry, number):
        x, vectors = carry
        begin = first + number * every
        push = lambda v: jax.jvp(lambda y: steps(y, begin), (x,), (v,))  # noqa: E731
        ends, pushed = jax.vmap(push)(vectors)
        q, r = jnp.linalg.qr(pushed.reshape(len(vectors), -1).T)
        grown = jnp.log(jnp.abs(jnp.diagonal(r)))
        return (ends[0], q.T.reshape(vectors.shape)), grown

    (x, vectors), grown = jax.lax.scan(block, (x, vectors), jnp.arange(blocks))
    return x, vectors, grown

"""A run as one pure function of tokens, weights and the law's numbers, which JAX differentiates.

Going backwards needs what was met going forwards. It is not kept but computed again: of N fixed
steps about 2 sqrt(N) tokens are held at once, and the inside of one step (its matrix of pairs).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import FixedStep, Solver

KEPT = 128  # states that an adaptive run keeps to go backwards; others are computed again


class How(NamedTuple):
    """How a run is to be differentiated; see `flow_map`."""

    forward: bool
    checkpoint: bool


def advanced(
    law: Dynamics,
    solver: Solver,
    x: Tokens,
    w: Weights,
    t: Time,
    steps: int,
    key: Key[Array, ""],
    how: How,
) -> Tokens:
    """Tokens at time t, which is so many steps of a solver of fixed step."""
    if isinstance(solver, Adaptive):
        return adaptive(law, solver, x, w, t, how.forward)
    if not isinstance(solver, FixedStep):
        raise ValueError(f"{type(solver).__name__} is neither adaptive nor of fixed step")
    return fixed(law, solver, x, w, steps, key, how.checkpoint)


def fixed(
    law: Dynamics,
    solver: FixedStep,
    x: Tokens,
    w: Weights,
    steps: int,
    key: Key[Array, ""],
    checkpoint: bool,
) -> Tokens:
    """Tokens after so many steps, with the numbers of `single.fixed`."""

    def advance(x: Tokens, step: Array) -> tuple[Tokens, None]:
        time = step.astype(x.dtype) * solver.h
        return solver.step(law, time, x, w, jax.random.fold_in(key, step)), None

    numbers = jnp.arange(steps)
    if not checkpoint:
        return jax.lax.scan(advance, x, numbers)[0]

    @jax.checkpoint
    def several(x: Tokens, numbers: Array) -> tuple[Tokens, None]:
        return jax.lax.scan(jax.checkpoint(advance), x, numbers)

    size = math.isqrt(steps)
    whole = steps - steps % size
    x, _ = jax.lax.scan(several, x, numbers[:whole].reshape(-1, size))
    return several(x, numbers[whole:])[0] if whole < steps else x


def adaptive(
    law: Dynamics, solver: Adaptive, x: Tokens, w: Weights, t: Time, forward: bool
) -> Tokens:
    """Tokens at time t, with the steps of `single.adaptive`: differentiable backwards, or
    `forward`.
    """
    rtol, atol = solver.tolerances(str(x.dtype))
    adjoint = diffrax.ForwardMode() if forward else diffrax.RecursiveCheckpointAdjoint(KEPT)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: args[0].velocity(jnp.asarray(t), y, args[1])),
        getattr(diffrax, solver.method.value)(),
        jnp.zeros((), x.dtype),
        jnp.asarray(t, x.dtype),
        None,
        x,
        args=(law, w),
        stepsize_controller=diffrax.PIDController(rtol, atol),
        max_steps=solver.max_steps,
        adjoint=adjoint,
    )
    if solution.ys is None:
        raise ValueError("a solution that was asked to save nothing")
    return law.space.project(solution.ys[0])

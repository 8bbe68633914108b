"""When an event happens between two steps: looked for after every step, then located within one."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Tokens, Weights
from tokenflock.solvers.solver import FixedStep


def in_whole_steps(law: Dynamics, solver: FixedStep) -> bool:
    """Whether nothing is between two steps: layers, and increments of noise, are not divided."""
    return solver.convention == "layer map" or law.noisy


def happened(
    until: Event, law: Dynamics, solver: FixedStep, step: Array, x: Tokens, w: Weights
) -> Array:
    """Which levels of an event have been reached after so many steps."""
    return until.margins(law, step.astype(x.dtype) * solver.h, x, w) <= 0


def locate(
    until: Event,
    law: Dynamics,
    solver: FixedStep,
    step: Array,
    ends: tuple[Tokens, Tokens],
    w: Weights,
    key: Any,
    level: int,
) -> tuple[Array, Tokens]:
    """(share of the step, tokens) at which a level of an event is reached, for a step that starts
    before it and ends after it.

    The solver takes a part of its step, halved until the part is known to the last digit: the error
    is that of the solver. In whole steps (see `in_whole_steps`) the share is one.
    """
    before, after = ends
    one = jnp.ones((), before.dtype)
    if in_whole_steps(law, solver):
        return one, after
    t = step.astype(before.dtype) * solver.h

    def tokens(share: Array) -> Tokens:
        part = eqx.tree_at(lambda solver: solver.h, solver, share * solver.h)
        return part.step(law, t, before, w, key)

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        over = until.margins(law, t + middle * solver.h, tokens(middle), w)[level] <= 0
        return jnp.where(over, low, middle), jnp.where(over, middle, high)

    digits = jnp.finfo(before.dtype).nmant
    share = jax.lax.fori_loop(0, digits, halve, (0 * one, one))[1]
    return share, jnp.where(share < 1, tokens(share), after)

"""A block of frames of many systems as one compiled program: `vmap` over systems, `scan` over
time, on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import Job, Parts, Paths, advance, fill
from tokenflock.engines.passing import happened, locate
from tokenflock.errors import SimulationError, overflowed
from tokenflock.events.event import Event
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import Observable, by_strips, on_sphere
from tokenflock.shapes import Array
from tokenflock.spaces import Sphere

Passage = tuple[Array, Array]  # step (slots, levels) that reached each level, -1; tokens before it


class Tiles(NamedTuple):
    """How the law listens by tiles, where it does; the same for all systems."""

    peaked: bool
    interpret: bool
    round: int = 1
    "a number of steps that divides those of every frame"

    def law(self, law: Dynamics) -> Dynamics:
        """The law that does so."""
        from tokenflock.engines.tiled import tiled  # not for a CPU to wait for

        return tiled(law, self.peaked, self.interpret)


def measured(observable: Observable, x: Array, w: Array) -> Array:
    """What an observable says of any tokens."""
    return observable.measure(x, w)


@eqx.filter_jit
def run_block(
    parts: Parts,
    paths: Paths,
    x: Array,
    w: Array,
    keys: Array,
    swept: list[Any],
    first: Array,
    strides: Array,
    until: Event | None,
    passed: Array,
    tiles: Tiles | None = None,
) -> tuple[Array, list[Array], Array, Passage]:
    """A block of frames of every slot: (tokens at its end, observables (slots, frames, ...), least
    cosine at its end, what was passed in it).

    Where tokens are no numbers any more the least cosine is NaN. `passed` (slots, levels) says
    which levels of the event have been reached before.
    """

    def system(x, key, values, first, passed):
        law, solver, observables = fill(parts, paths, values)
        running = law if tiles is None else tiles.law(law)
        step_on = advance(solver, running, w, key, x.dtype)
        look, length = measured_by(law, tiles), 1 if tiles is None else tiles.round

        def once(_, carry):
            now, passage = carry
            later = step_on(now)
            if until is not None:
                over = happened(until, law, solver, later[1], later[0], w)
                passage = _note(passage, over & ~passed, now)
            return later, passage

        def around(_, carry):
            """A round, within which a GPU goes on without asking the host."""
            if until is not None or law.noisy:
                return jax.lax.fori_loop(0, length, once, carry)
            (x, step), passage = carry
            x = solver.steps(running, step.astype(x.dtype) * solver.h, x, w, length)
            return (x, step + length), passage

        def frame(carry, stride):
            body = once if length == 1 else around
            carry = jax.lax.fori_loop(0, stride // length, body, carry)
            return carry, [look(observable, carry[0][0], w) for observable in observables]

        nothing = (
            jnp.full(passed.shape, -1, jnp.int32),
            jnp.zeros((*passed.shape, *x.shape), x.dtype),
        )
        ((x, _), passage), values = jax.lax.scan(frame, ((x, first), nothing), strides)
        sound = jnp.isfinite(jnp.where(w[:, None] > 0, x, 0)).all()
        least = MinimumCosine().measure(x, w) if tiles is None else jnp.zeros((), x.dtype)
        return x, values, jnp.where(sound, least, jnp.nan), passage

    return jax.vmap(system)(x, keys, swept, first, passed)


def measured_by(
    law: Dynamics, tiles: Tiles | None = None
) -> Callable[[Observable, Array, Array], Array]:
    """Return how observables are measured on tokens of this law."""
    if tiles is not None:
        return by_strips
    if isinstance(law.space, Sphere):
        return on_sphere
    return measured


def _note(passage: Passage, over: Array, now: tuple[Array, Array]) -> Passage:
    """The step in which each level is first reached, and the tokens before it."""
    (at, before), (x, step) = passage, now
    new = over & (at < 0)
    return jnp.where(new, step, at), jnp.where(new[:, None, None], x, before)


@eqx.filter_jit
def first_look(
    parts: Parts,
    paths: Paths,
    x: Array,
    w: Array,
    swept: list[Any],
    until: Event | None,
    tiles: Tiles | None = None,
) -> list[Array]:
    """Observables at time zero, and which levels of the event are reached there."""
    look = measured if tiles is None else by_strips

    def observe(x, values):
        law, solver, observables = fill(parts, paths, values)
        over = (
            jnp.zeros(0, bool)
            if until is None
            else happened(until, law, solver, jnp.asarray(0), x, w)
        )
        return [*(look(observable, x, w) for observable in observables), over]

    return jax.vmap(observe)(x, swept)


@eqx.filter_jit
def _shares(
    parts: Parts,
    paths: Paths,
    w: Array,
    keys: Array,
    swept: list[Any],
    until: Event,
    passage: Passage,
) -> Array:
    """The share of its step at which each level is reached, (slots, levels)."""

    def system(key, values, at, before):
        law, solver, _ = fill(parts, paths, values)
        shares = []
        for level in range(len(at)):
            after = advance(solver, law, w, key, before.dtype)((before[level], at[level]))[0]
            own = jax.random.fold_in(key, at[level])
            ends = before[level], after
            shares.append(locate(until, law, solver, at[level], ends, w, own, level)[0])
        return jnp.stack(shares)

    return jax.vmap(system)(keys, swept, *passage)


def note_passages(
    job: Job, w: Array, keys: Array, swept: list[Any], passage: Passage, steps: np.ndarray
) -> None:
    """Write to `steps` (slots, levels) where within its step each new level was reached."""
    at = np.asarray(passage[0])
    if job.until is None or not (at >= 0).any():
        return
    shares = np.asarray(_shares(job.parts, job.paths, w, keys, swept, job.until, passage))
    steps[at >= 0] = (at + shares.astype(np.float64))[at >= 0]


def check_sound(job: Job, least: Any) -> None:
    """A count would hide tokens that are no numbers any more."""
    if bool(jnp.isnan(least).any()):
        raise SimulationError(overflowed(type(job.law).__name__, job.dtype))

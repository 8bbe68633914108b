"""One system over exponentially long times: tokens that have met are one heavy token, and the clock
runs by the way that tokens go.

Two things keep an explicit solver from a metastable state. Clusters contract at a rate of order one
while they drift at one of order e^(-c beta): tokens closer than a radius r, and closing, become one
token of their total weight at their mean, which moves the rest by O(r^2) where the law pulls
clusters together. And time itself leaves the numbers: with ds = (|v| + 1/T) dt, |v| the speed of
all tokens and T the length of the run, a whole run takes as many units of s as tokens go, plus one.
Time is then a number that the solver integrates, as accurately as the tokens.

The velocity is summed over pairs after its projection: the sum before it is of order one, and its
rounding would drown what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix

from tokenflock.dynamics.dynamics import AttentionLaw, Dynamics, MeanField
from tokenflock.engines.adaptive import stopped
from tokenflock.engines.course import Course
from tokenflock.engines.single import Frames
from tokenflock.errors import SimulationError
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.spaces import Sphere

ENTRIES = 2**22  # of the projected values of all pairs
FAR = 1e9  # more than tokens go
CLOSE = 1e-13  # how closely a moment is located, in the way that tokens go
AROUND = 1.01  # pairs within so many radii have met
ROUNDING = 1e-14
FRAME, MEETING, EVENT = range(3)
Velocity = Callable[[Time, Tokens, Weights], Tokens]


def slow_velocity(law: Dynamics, n: int, d: int) -> Velocity:
    """The velocity of a law, right to the last digits however small it is, where the law is a sum
    over tokens:

        v_i = sum_j A_ij P_{x_i} values_j

    Elsewhere the law's own, whose error is that of rounding its force.
    """
    if not isinstance(law, AttentionLaw) or not _is_sum(law) or n * n * d > ENTRIES:
        return law.velocity

    def velocity(t: Time, x: Tokens, w: Weights) -> Tokens:
        p = law.space.project(x)
        values = law.values(t, p)
        tangent = values - (p @ values.T)[..., None] * p[:, None]
        size = jnp.sum(values * values, axis=-1, keepdims=True)
        nothing = jnp.sum(tangent * tangent, axis=-1, keepdims=True) <= ROUNDING**2 * size
        itself = jnp.eye(len(p), dtype=bool)[..., None]  # of what a token says along itself
        tangent = jnp.where(itself & nothing, 0, tangent)  # only the rounding is left
        return jnp.einsum("ij,ijk->ik", law.attention(t, p, p, w), tangent)

    return velocity


def _is_sum(law: AttentionLaw) -> bool:
    """Whether a law moves its tokens as the definition of its kind says."""
    kind = type(law)
    plain = kind.velocity is Dynamics.velocity and kind.force is MeanField.force
    return plain and kind.field is AttentionLaw.field and isinstance(law.space, Sphere)


@eqx.filter_jit
def _segment(
    law: Dynamics,
    solver: Adaptive,
    start: tuple[Tokens, Time],
    w: Weights,
    heavy: tuple[Array, Weights],
    watched: Array,
    end: tuple[Time, Time],
    until: Event | None,
    limits: Array,
) -> tuple[diffrax.Solution, Array]:
    """From a state (tokens, time) to the next frame, meeting or event, whichever comes first; and
    how far each of the three is then.

    `heavy` is (the token that each is part of, the weights of those), `watched` the pairs that may
    meet, `end` (the next frame, the length of the run), `limits` (rtol, atol, radius).
    """
    home, weights = heavy
    own = home == jnp.arange(len(home))
    velocity = slow_velocity(law, *start[0].shape)

    def field(s, state, _):
        x, t = state
        v = jnp.where(own[:, None], velocity(t, x, weights), 0)
        pace = 1 / (jnp.sqrt(jnp.sum(v * v)) + 1 / end[1])
        return v * pace, pace

    def margins(state):
        x, t = law.space.project(state[0]), state[1]
        gap = jnp.min(jnp.where(watched, _distances(x), jnp.inf)) - limits[2]
        over = jnp.inf if until is None else until.margin(law, t, x[home], w)
        return jnp.stack([(end[0] - t) / end[0], gap, over])

    event = diffrax.Event(
        lambda t, y, args, **_: jnp.min(margins(y)),
        optimistix.Bisection(rtol=CLOSE, atol=CLOSE),
        direction=False,
    )
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        getattr(diffrax, solver.method.value)(),
        0.0,
        FAR,
        None,
        start,
        saveat=diffrax.SaveAt(t1=True),
        stepsize_controller=diffrax.PIDController(limits[0], limits[1], norm=optimistix.max_norm),
        max_steps=solver.max_steps,
        event=event,
        throw=False,
    )
    x, t = (values[-1] for values in solution.ys or ())
    return solution, margins((x, t))


def _distances(x: Tokens) -> Array:
    """|x_i - x_j|, from differences: right for tokens that nearly agree."""
    return jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1))


def coalescing(course: Course, radius: float) -> Iterator[tuple[Frames, int]]:
    """Frames at the times of a course and the number of heavy tokens in each.

    The last one is the event, if it comes.
    """
    law, solver, until = course.law, course.solver, course.until
    x, w, times = course.x, course.w, course.times
    limits = jnp.append(course.limits, radius)
    state = _Heavy(law, np.asarray(x), np.asarray(w), radius)
    now = float(times[0])
    yield (times[:1], state.frame()), state.count
    if until is not None and _over(until, law, now, state):
        return
    for time in times[1:]:
        reached = MEETING
        while reached == MEETING:
            state.join(now)
            if until is not None and _over(until, law, now, state):
                reached = EVENT
                break
            heavy = jnp.asarray(state.home), jnp.asarray(state.weights)
            start = jnp.asarray(state.x), jnp.asarray(now, x.dtype)
            ends = jnp.asarray(time, x.dtype), jnp.asarray(times[-1], x.dtype)
            solution, margins = _segment(
                law, solver, start, w, heavy, jnp.asarray(state.apart()), ends, until, limits
            )
            _check(solution, solver, law, now, state)
            tokens, clock = (np.asarray(values)[-1] for values in solution.ys or ())
            state.x, now = np.array(law.space.project(tokens)), float(clock)
            sizes = np.array([1.0, radius, 1.0])
            reached = int(np.argmin(np.asarray(margins) / sizes))
        now = now if reached == EVENT else float(time)
        yield (np.array([now]), state.frame()), state.count
        if reached == EVENT:
            return


def _over(until: Event, law: Dynamics, now: float, state: _Heavy) -> bool:
    """Whether an event has happened, be it by the last meeting."""
    x, w = jnp.asarray(state.frame()[0]), jnp.asarray(state.w)
    return bool(until.margin(law, jnp.asarray(now, x.dtype), x, w) <= 0)


def _check(
    solution: diffrax.Solution, solver: Adaptive, law: Dynamics, now: float, state: _Heavy
) -> None:
    """Raise if the run cannot go on."""
    if stopped(solution):
        return
    steps = int(solution.stats["num_steps"])
    raise SimulationError(
        f"{type(law).__name__} gave up after t = {now:g} and {steps} steps with"
        f" {state.count} heavy tokens left: raise max_steps (now {solver.max_steps}), loosen rtol,"
        " or take a larger coalesce"
    )


class _Heavy:
    """Which tokens are one, where they are, and how heavy."""

    def __init__(self, law: Dynamics, x: np.ndarray, w: np.ndarray, radius: float) -> None:
        self.law, self.w, self.radius = law, w, radius
        self.x = np.array(x)
        self.home = np.arange(len(x))
        self.weights = np.array(w)
        self.velocity = eqx.filter_jit(slow_velocity(law, *x.shape))

    @property
    def own(self) -> np.ndarray:
        """The tokens that stand for themselves and others."""
        return self.home == np.arange(len(self.home))

    @property
    def count(self) -> int:
        return int(self.own.sum())

    def frame(self) -> np.ndarray:
        """All tokens, those that are one at one place, (1, n, d)."""
        return self.x[self.home][None]

    def _near(self) -> np.ndarray:
        return np.asarray(_distances(jnp.asarray(self.x))) <= AROUND * self.radius

    def apart(self) -> np.ndarray:
        """Pairs of heavy tokens that have not met."""
        return np.outer(self.own, self.own) & ~self._near()

    def join(self, now: float) -> None:
        """Make one token of those that have met and do not move apart."""
        while True:
            v = np.asarray(
                self.velocity(jnp.asarray(now), jnp.asarray(self.x), jnp.asarray(self.weights))
            )
            gaps, closing = self.x[:, None] - self.x, v[:, None] - v
            met = np.outer(self.own, self.own) & self._near() & ((gaps * closing).sum(-1) <= 0)
            pairs = np.argwhere(np.triu(met, 1))
            if not len(pairs):
                return
            self._merge(*map(int, pairs[0]))

    def _merge(self, first: int, second: int) -> None:
        parts = self.weights[[first, second]]
        shares = parts / parts.sum() if parts.sum() > 0 else np.full(2, 0.5)
        self.x[first] = np.asarray(self.law.space.project(shares @ self.x[[first, second]]))
        self.home[self.home == second] = first
        self.weights[first], self.weights[second] = parts.sum(), 0.0

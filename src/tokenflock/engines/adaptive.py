"""One system, every frame kept, by the adaptive steps of diffrax; in blocks of frames, as in
`single`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines._patience import Patient
from tokenflock.engines.course import Course
from tokenflock.engines.single import BLOCKS, Frames, over_at_once
from tokenflock.errors import SimulationError
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive


@eqx.filter_jit
def _adaptive_block(
    law: Dynamics,
    solver: Adaptive,
    x: Tokens,
    w: Weights,
    begin: Array,
    times: jax.Array,
    until: Event | None,
    tolerances: Array,
    dense: int,
) -> diffrax.Solution:
    event = None
    if until is not None:
        event = diffrax.Event(
            lambda t, y, args, **_: until.margin(law, t, law.space.project(y), w),
            optimistix.Bisection(rtol=1e-10, atol=1e-10),
            direction=False,
        )
    saves = [diffrax.SubSaveAt(ts=times), diffrax.SubSaveAt(t1=True)]
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: law.velocity(jnp.asarray(t), y, w)),
        getattr(diffrax, solver.method.value)(),
        begin,
        times[-1],
        None,
        x,
        saveat=diffrax.SaveAt(dense=True) if dense else diffrax.SaveAt(subs=saves),
        stepsize_controller=Patient(
            diffrax.PIDController(tolerances[0], tolerances[1]), solver.max_steps
        ),
        max_steps=dense or solver.max_steps,
        event=event,
        throw=False,
    )


def adaptive(course: Course) -> Iterator[Frames]:
    """Frames at the times of a course, block by block.

    The last one is the event, if it comes.
    """
    law, x, w, times, until = course.law, course.x, course.w, course.times, course.until
    yield times[:1], np.asarray(x)[None]
    if until is not None and over_at_once(until, law, x, w):
        return
    size = math.ceil((len(times) - 1) / BLOCKS)
    method = _method(course.solver)
    for first in range(1, len(times), size):
        block = times[first : first + size]
        padded = np.pad(block, (0, size - len(block)), mode="edge")
        begin = jnp.asarray(times[first - 1], x.dtype)
        solution = _adaptive_block(
            law, method, x, w, begin, jnp.asarray(padded, x.dtype), until, course.limits, 0
        )
        over = stopped(solution)
        _check(solution, course.solver, block, over, (law, begin, x, w))
        (frames, last), ends = _saved(law, solution)
        frames = frames[: len(block)]
        if over:
            stop = float(ends[0])
            keep = int(np.sum(block < stop))
            yield np.append(block[:keep], stop), np.concatenate([frames[:keep], last])
            return
        yield block, frames
        x = jnp.asarray(last[0])


def interpolant(course: Course, max_steps: int = 65_536) -> Callable[[np.ndarray], Array]:
    """The whole trajectory of a course as a function of time (dense output)."""
    law, x, w, times = course.law, course.x, course.w, course.times
    begin, end = jnp.asarray(times[0], x.dtype), jnp.asarray(times[-1:], x.dtype)
    solution = _adaptive_block(
        law, _method(course.solver), x, w, begin, end, None, course.limits, max_steps
    )
    _check(solution, course.solver, times[-1:], False, (law, begin, x, w))
    return lambda times: law.space.project(jax.vmap(solution.evaluate)(times))


def _saved(
    law: Dynamics, solution: diffrax.Solution
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """(tokens at the times asked for, tokens where it ended) and the time of the end."""
    if solution.ys is None or solution.ts is None:
        raise ValueError("a solution that was asked to save nothing")
    frames, last = (np.asarray(law.space.project(x)) for x in solution.ys)
    return (frames, last), np.asarray(solution.ts[1])


def stopped(solution: diffrax.Solution) -> bool:
    """Return whether the event ended the run.

    The root finder wants a margin below 1e-10. Rounding in float32, and margins that are steep or
    that jump, do not reach it: the bisection then ends at neighbouring numbers, and the moment is
    located as well as the precision allows. Explicit steps solve no other nonlinear equation.
    """
    halved = diffrax.RESULTS.nonlinear_max_steps_reached
    return bool((solution.result == diffrax.RESULTS.event_occurred) | (solution.result == halved))


def _method(solver: Adaptive) -> Adaptive:
    """The solver without its tolerances, which are passed as numbers so that other ones compile
    nothing anew.
    """
    return Adaptive(method=solver.method, max_steps=solver.max_steps)


def _check(
    solution: diffrax.Solution,
    solver: Adaptive,
    block: np.ndarray,
    over: bool,
    here: tuple[Dynamics, Array, Tokens, Weights],
) -> None:
    """Turn a failure of the solver into a sentence that contains the remedy.

    `here` is where the block began: (law, time, tokens, weights).
    """
    if over or solution.result == diffrax.RESULTS.successful:
        return
    law, begin, x, w = here
    name = type(law).__name__
    if not bool(jnp.isfinite(law.velocity(begin, x, w)).all()):
        raise SimulationError(
            f"the velocity of {name} is not a number at t = {float(begin):g}: a parameter is NaN or"
            " infinite, the force overflows, or Sinkhorn's weights were not found; take finite"
            " parameters, a smaller beta, or more rounds of SinkhornWeighing"
        )
    steps = int(solution.stats["num_steps"])
    if solution.result == diffrax.RESULTS.dt_min_reached:
        raise SimulationError(
            f"{name} is too stiff for the adaptive solver: after {steps} steps its steps are so"
            f" short that {solver.max_steps} more would not reach t = {block[-1]:g}; {_remedy(law)}"
        )
    raise SimulationError(
        f"the adaptive solver gave up before t = {block[-1]:g} after {steps} steps: raise max_steps"
        f" (now {solver.max_steps}), or {_remedy(law)}"
    )


def _remedy(law: Dynamics) -> str:
    """Return what to do about a law that is too stiff."""
    merge = "coalesce=1e-9, which joins tokens that have met, " if law.exchangeable else ""
    return (
        f"take {merge}Adaptive(method='chebyshev', rtol=1e-7), a shorter time, or the layer map"
        " Layer(h=0.1)"
    )

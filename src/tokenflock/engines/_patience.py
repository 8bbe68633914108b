"""A step size controller that sees early when the end will not be reached."""

from __future__ import annotations

from typing import Any

import diffrax
import jax.numpy as jnp

WINDOW = 2048  # steps between two looks at how far the solver has come


class Patient(diffrax.AbstractStepSizeController):
    """Another controller, stopped where steps have become so short that `most` more would not do.

    After every window of steps the mean step of that window is held against the time that is left:
    a stiff law shows itself in seconds and not after a million steps. A step that is not a number
    ends the run at once.
    """

    inner: diffrax.AbstractStepSizeController
    most: int

    def wrap(self, direction: Any) -> Patient:
        return Patient(self.inner.wrap(direction), self.most)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        first, state = self.inner.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return first, (state, jnp.asarray(t1), jnp.asarray(0), jnp.asarray(t0))

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, state):
        inner, end, steps, mark = state
        keep, start, stop, jump, inner, result = self.inner.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        steps = steps + 1
        look = steps % WINDOW == 0
        mean = (start - mark) / WINDOW
        hopeless = (look & (end - start > self.most * mean)) | ~jnp.isfinite(stop)
        mark = jnp.where(look, start, mark)
        failure = diffrax.RESULTS.where(hopeless, diffrax.RESULTS.dt_min_reached, result)
        return keep, start, stop, jump, (inner, end, steps, mark), failure

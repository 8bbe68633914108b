"""What an engine is asked to do: many systems of one shape, one law with other numbers in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Array
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import FixedStep

Parts = tuple[Dynamics, Any, tuple[Observable, ...]]  # the law, its solver, what is measured
Advance = Callable[[tuple[Array, Array]], tuple[Array, Array]]
Paths = tuple[tuple[Any, ...], ...]
Values = dict[str, Any]  # observable -> (systems, frames, ...)
PASSAGE = "first_passage"  # among values: (systems, levels), in steps; NaN where nothing happened
Finished = Callable[[np.ndarray, Values], None]  # told the numbers of systems that are done


@dataclass(frozen=True)
class Job:
    """Systems that share a law, a solver, observables and times; `paths` name the numbers that
    differ between them.

    A path is a tuple such as (0, 'beta'): attribute beta of the law, (1, 'h'): of the solver, (2,
    0, 'delta'): of the first observable.
    """

    law: Dynamics
    solver: FixedStep | Adaptive
    observables: tuple[Observable, ...]
    w: np.ndarray
    steps: np.ndarray  # numbers of steps at which to observe; the first is 0
    paths: Paths
    dtype: str
    settle: bool
    until: Event | None = None
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of the frames

    @property
    def parts(self) -> Parts:
        """The law, the solver and the observables, as `paths` count them."""
        return self.law, self.solver, self.observables

    @cached_property
    def strides(self) -> np.ndarray:
        """Steps between one frame and the next."""
        return np.diff(self.steps)

    @property
    def delta(self) -> float | None:
        """Within this distance of consensus all observables are final.

        None where that cannot be said.
        """
        if not (self.settle and self.law.keeps_cones and self.observables):
            return None
        distances = [observable.rests_within for observable in self.observables]
        known = [rest for rest in distances if rest is not None and np.ndim(rest) == 0]
        return min(map(float, known)) if len(known) == len(distances) else None


def fill(parts: Parts, paths: Paths, values: list[Any]) -> Parts:
    """The parts with other numbers at the paths.

    Observables that lack a number take it from the law as it is then.
    """
    law, solver, observables = _put(parts, paths, values)
    return law, solver, tuple(observable.bind(law) for observable in observables)


def without(parts: Parts, paths: Paths) -> Parts:
    """The parts with nothing but a zero at the paths, for what `fill` puts there later."""
    return _put(parts, paths, [0.0] * len(paths))


def _put(parts: Parts, paths: Paths, values: list[Any]) -> Parts:
    if not paths:
        return parts
    where = partial(_leaves, paths=paths)
    return eqx.tree_at(where, parts, values, is_leaf=lambda leaf: leaf is None)


def _leaves(parts: Parts, paths: Paths) -> list[Any]:
    return [follow(parts, path) for path in paths]


def follow(tree: Any, path: tuple[Any, ...]) -> Any:
    """The leaf at a path."""
    for step in path:
        tree = tree[step] if isinstance(step, int) else getattr(tree, step)
    return tree


def advance(solver: FixedStep, law: Dynamics, w: Array, key: Any, dtype: Any) -> Advance:
    """(x, step) -> (x, step + 1): the same step for every engine."""

    def step_on(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        x, step = carry
        own: Any = None if key is None else jax.random.fold_in(key, step)
        return solver.step(law, step.astype(dtype) * solver.h, x, w, own), step + 1

    return step_on

"""What an ensemble is: its parts, the axes it sweeps, and the work cut into sheets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import Job
from tokenflock.errors import require
from tokenflock.events.event import Event
from tokenflock.matrices._random import RandomMatrices, Value
from tokenflock.observables.observable import Observable
from tokenflock.precision import cast
from tokenflock.solvers.adaptive import Adaptive
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts.start import Start
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.schedule import When, check, schedule

ROLE = {"dynamics": 0, "solver": 1, "observe": 2}
MANY = 2000  # values of an axis, and sheets, that are all built to be checked; of more, a part
FEW = 64  # values of an axis that tell an engine what the laws of a sheet are like


@dataclass(frozen=True)
class Sheet:
    """All cells that share shapes and steps: one choice of the outer axes."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep | Adaptive
    observe: tuple[Observable, ...]
    ranges: tuple[range, ...]  # positions on every axis, outer ones fixed

    @property
    def cells(self) -> Iterator[tuple[int, ...]]:
        """Positions on every axis, the last one fastest."""
        return itertools.product(*self.ranges)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(map(len, self.ranges))


@dataclass(frozen=True)
class Plan:
    """Everything that defines an ensemble."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep | Adaptive
    observe: tuple[Observable, ...]
    axes: tuple[sweeps.Axis, ...]
    repeats: int
    when: When
    matrices: RandomMatrices | None
    seed: int
    dtype: str
    rotate: bool
    settle: bool
    until: Event | None = None
    part: Mapping[str, tuple[Sequence[int], int]] = field(default_factory=dict)
    tolerance: float | None = None  # of the error of time stepping; None: not checked
    given: bool = True  # whether the solver was named, and so is used as it is

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(axis.values) for axis in self.axes)

    def sheets(self) -> Iterator[Sheet]:
        """The outer loop."""
        choices = (range(len(axis.values)) if axis.outer else range(1) for axis in self.axes)
        return map(self.sheet, itertools.product(*choices))

    def sheet(self, cell: tuple[int, ...]) -> Sheet:
        """The sheet that a cell lies in."""
        parts = {
            "dynamics": self.dynamics,
            "start": self.start,
            "solver": self.solver,
            "observe": self.observe,
        }
        for axis, k in zip(self.axes, cell):
            parts = sweeps.put(parts, axis.path, axis.value(k)) if axis.outer else parts
        ranges = tuple(
            range(k, k + 1) if axis.outer else range(len(axis.values))
            for axis, k in zip(self.axes, cell)
        )
        return Sheet(**parts, ranges=ranges)

    def _telling(self) -> Iterator[Sheet]:
        """The sheets, or where they are many each value of an outer axis beside the first and the
        last of the others.
        """
        outer = [axis for axis in self.axes if axis.outer]
        if math.prod(len(axis.values) for axis in outer) <= MANY:
            yield from self.sheets()
            return
        for k, axis in enumerate(self.axes):
            for value in _sample(axis, MANY) if axis.outer else ():
                for end in (0, -1):
                    ends = [range(len(each.values))[end if each.outer else 0] for each in self.axes]
                    yield self.sheet((*ends[:k], value, *ends[k + 1 :]))

    def solvers(self) -> Iterator[tuple[FixedStep | Adaptive, int]]:
        """Every solver of the ensemble, and how many cells it has."""
        mine = [axis for axis in self.axes if axis.path[0] == "solver"]
        cells = math.prod(self.shape) // math.prod(len(axis.values) for axis in mine)
        for pick in itertools.product(*(range(len(axis.values)) for axis in mine)):
            parts: dict[str, Any] = {"solver": self.solver}
            for axis, k in zip(mine, pick):
                parts = sweeps.put(parts, axis.path, axis.value(k))
            yield parts["solver"], cells

    def numbers(self, cells: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The numbers of cells, by which their systems are drawn: those of the whole ensemble."""
        whole = tuple(axis.whole for axis in self.axes)
        places = [tuple(axis.place(k) for axis, k in zip(self.axes, cell)) for cell in cells]
        return np.array([np.ravel_multi_index(place, whole) if whole else 0 for place in places])

    def ids(self, cells: Sequence[tuple[int, ...]]) -> np.ndarray:
        """(cell, repeat) of every system of these cells, as they are numbered in the whole
        ensemble.
        """
        repeats, _ = self.part.get("repeat", (range(self.repeats), 0))
        numbers = self.numbers(cells).repeat(self.repeats)
        return np.stack([numbers, np.tile(np.asarray(repeats, int), len(cells))], axis=-1)

    def laws(self, sheet: Sheet, most: int = FEW) -> list[Dynamics]:
        """The laws of a sheet, each value of each axis once; of more than `most` values a part,
        with the least and the largest.

        They are built here, and so checked: engines fill in numbers.
        """
        inner = [axis for axis in self.axes if not axis.outer]
        parts = self._first(sheet)
        each = [
            sweeps.put(parts, axis.path, axis.value(k))
            for axis in inner
            for k in _sample(axis, most)
        ]
        return [chosen["dynamics"] for chosen in (parts, *each)]

    def _first(self, sheet: Sheet) -> dict[str, Any]:
        """The dynamics and the observables of the first cell of a sheet."""
        parts = {"dynamics": sheet.dynamics, "observe": sheet.observe}
        for axis in self.axes:
            if not axis.outer:
                parts = sweeps.put(parts, axis.path, axis.value(0))
        return parts

    def check(self) -> None:
        """Every law must fit the tokens, and every step the times."""
        most = MANY  # all values beside the first sheet, then the ends of each axis
        for sheet in self._telling():
            for law in self.laws(sheet, most):
                check(law, sheet.start, sheet.solver, *self.when)
            most = 2
        frames = sorted({len(self.steps(solver)[0]) for solver, _ in self.solvers()})
        require(
            len(frames) == 1,
            "frames",
            "at most one for each step, for every h",
            f"{frames} frames",
            f"write {frames[0]}",
        )

    def steps(self, solver: FixedStep | Adaptive) -> tuple[np.ndarray, np.ndarray]:
        """Return (steps to keep, times to keep) for a solver of this ensemble.

        Steps of controlled length count as one for each frame.
        """
        steps, times = schedule(solver, *self.when)
        return np.arange(len(times)) if steps is None else np.asarray(steps), times

    def total_steps(self) -> int:
        """Steps of all systems together."""
        return sum(
            cells * self.repeats * int(self.steps(solver)[0][-1])
            for solver, cells in self.solvers()
        )

    def title(self) -> str:
        """What ran, and over what: SelfAttention over beta, d."""
        over = ", ".join(axis.name for axis in self.axes)
        return (
            f"tokenflock: {type(self.dynamics).__name__} over {over}"
            if over
            else f"tokenflock: {self.dynamics!r}"
        )

    def recipe(self) -> dict[str, Any]:
        """What was asked for, as a file keeps it."""
        return {
            "verb": "ensemble",
            "dynamics": self.dynamics,
            "start": self.start,
            "solver": self.solver,
            "solver_given": self.given,
            "tolerance": self.tolerance,
            "observe": list(self.observe),
            "over": {axis.name: axis.values for axis in self.axes},
            "repeats": self.repeats,
            **self.when.recipe(),
            "matrices": self.matrices,
            "seed": self.seed,
            "dtype": self.dtype,
            "rotate": self.rotate,
            "settle": self.settle,
            "until": self.until,
            "part": {name: [list(map(int, at)), int(of)] for name, (at, of) in self.part.items()},
        }

    def job(self, sheet: Sheet) -> Job:
        """The work of a sheet, for an engine.

        A swept threshold decides itself when it is final: nothing settles then.
        """
        inner = [axis for axis in self.axes if not axis.outer]
        paths = tuple((ROLE[axis.path[0]], *axis.path[1:]) for axis in inner)
        thresholds = any(axis.path[0] == "observe" for axis in inner)
        random = self.matrices is not None and self.matrices.value is not Value.IDENTITY
        settles = self.settle and not thresholds and not random
        settle = settles and all(law.keeps_cones for law in self.laws(sheet))
        law, observe = cast((self._first(sheet)["dynamics"], sheet.observe), self.dtype)
        solver, (steps, times) = sheet.solver, self.steps(sheet.solver)
        return Job(
            law,
            solver if isinstance(solver, Adaptive) else cast(solver, self.dtype),
            observe,
            sheet.start.weights(),
            steps,
            paths,
            self.dtype,
            settle,
            cast(self.until, self.dtype),
            times,
        )


def _sample(axis: sweeps.Axis, most: int) -> list[int]:
    """The places of all values of an axis; of more than so many, of a part with the least and the
    largest. All of them are numbers: that is checked of all.
    """
    count = len(axis.values)
    if count <= most:
        return list(range(count))
    fine = axis.values.dtype.kind != "f" or bool(np.isfinite(axis.values).all())
    require(fine, f"over[{axis.name!r}]", "finite numbers", "NaN or infinity")
    some = np.linspace(0, count - 1, most).astype(int)
    if axis.values.ndim == 1:
        some = np.append(some, [int(axis.values.argmin()), int(axis.values.argmax())])
    return [int(k) for k in np.unique(some)]

"""What an ensemble is: its parts, the axes it sweeps, and the work cut into sheets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
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
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts.start import Start
from tokenflock.verbs import axes as sweeps
from tokenflock.verbs.schedule import When, check, schedule

ROLE = {"dynamics": 0, "solver": 1, "observe": 2}


@dataclass(frozen=True)
class Sheet:
    """All cells that share shapes and steps: one choice of the outer axes."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep
    observe: tuple[Observable, ...]
    cells: tuple[tuple[int, ...], ...]  # positions on every axis, outer ones fixed


@dataclass(frozen=True)
class Plan:
    """Everything that defines an ensemble."""

    dynamics: Dynamics
    start: Start
    solver: FixedStep
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

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(axis.values) for axis in self.axes)

    def sheets(self) -> list[Sheet]:
        """The outer loop."""
        outer = [axis for axis in self.axes if axis.outer]
        sheets = []
        for pick in itertools.product(*(range(len(axis.values)) for axis in outer)):
            parts = {
                "dynamics": self.dynamics,
                "start": self.start,
                "solver": self.solver,
                "observe": self.observe,
            }
            for axis, k in zip(outer, pick):
                parts = sweeps.put(parts, axis.path, axis.value(k))
            fixed = {id(axis): k for axis, k in zip(outer, pick)}
            ranges = [
                [fixed[id(axis)]] if axis.outer else range(len(axis.values)) for axis in self.axes
            ]
            sheets.append(Sheet(**parts, cells=tuple(itertools.product(*ranges))))
        return sheets

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

    def laws(self, sheet: Sheet) -> list[Dynamics]:
        """The laws of a sheet, each value of each axis once.

        They are built here, and so checked: engines fill in numbers.
        """
        inner = [axis for axis in self.axes if not axis.outer]
        parts = {"dynamics": sheet.dynamics, "observe": sheet.observe}
        for axis in inner:
            parts = sweeps.put(parts, axis.path, axis.value(0))
        each = [
            sweeps.put(parts, axis.path, axis.value(k))
            for axis in inner
            for k in range(len(axis.values))
        ]
        return [chosen["dynamics"] for chosen in (parts, *each)]

    def check(self) -> None:
        """Every law must fit the tokens, and every step the times."""
        sheets = self.sheets()
        for sheet in sheets:
            for law in self.laws(sheet):
                check(law, sheet.start, sheet.solver, *self.when)
        frames = sorted({len(self.steps(sheet.solver)[0]) for sheet in sheets})
        require(
            len(frames) == 1,
            "frames",
            "at most one for each step, for every h",
            f"{frames} frames",
            f"write {frames[0]}",
        )

    def steps(self, solver: FixedStep) -> tuple[np.ndarray, np.ndarray]:
        """(steps to keep, times to keep) for a solver of this ensemble."""
        steps, times = schedule(solver, *self.when)
        return np.asarray(steps), times

    def total_steps(self) -> int:
        """Steps of all systems together."""
        return sum(
            len(sheet.cells) * self.repeats * int(self.steps(sheet.solver)[0][-1])
            for sheet in self.sheets()
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
        laws = self.laws(sheet)
        thresholds = any(axis.path[0] == "observe" for axis in inner)
        random = self.matrices is not None and self.matrices.value is not Value.IDENTITY
        settle = (
            self.settle and not thresholds and not random and all(law.keeps_cones for law in laws)
        )
        parts = cast((laws[0], sheet.solver, sheet.observe), self.dtype)
        return Job(
            *parts,
            sheet.start.weights(),
            self.steps(sheet.solver)[0],
            paths,
            self.dtype,
            settle,
            cast(self.until, self.dtype),
        )

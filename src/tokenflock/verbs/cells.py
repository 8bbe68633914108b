"""Cells of an ensemble: all repeats of some of them, run and summed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from tokenflock.engines.choose import Choice, choose, drawn
from tokenflock.engines.controlled import run as run_controlled
from tokenflock.engines.job import PASSAGE, Job, Values
from tokenflock.engines.systems import Systems
from tokenflock.errors import SimulationError
from tokenflock.precision import precision
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.sweeps.unfinished import Group
from tokenflock.verbs.accuracy import checked
from tokenflock.verbs.overflow import remedies
from tokenflock.verbs.passages import passages
from tokenflock.verbs.plan import Plan, Sheet

Keep = Callable[[np.ndarray, Values], None]  # told the numbers of finished systems and their values


@dataclass
class Tally:
    """How much is done."""

    total: int
    report: Callable[[int, int], None] | None
    done: int = 0

    def add(self, steps: int) -> None:
        """So many steps more are done; who watches is told."""
        self.done += steps
        if self.report:
            self.report(self.done, self.total)


@dataclass(frozen=True)
class Summary:
    """What is kept of the repeats of one cell."""

    quantiles: tuple[float, ...]
    keep: bool

    def of(self, values: Any, cells: int) -> dict[str, np.ndarray]:
        """(cells x repeats, frames, ...) -> named arrays (cells, ...), computed where the values
        lie.
        """
        values = values.reshape(cells, -1, *values.shape[1:])
        if self.keep:
            return {"": np.asarray(values)}
        count = values.shape[1]
        if isinstance(values, np.ndarray):
            values = values.astype(np.float64)
        spread = (
            values.std(axis=1, ddof=1) / count**0.5
            if count > 1
            else np.full((cells, *values.shape[2:]), np.nan)
        )
        statistics = {
            "": np.asarray(values.mean(axis=1), np.float64),
            "_error": np.asarray(spread, np.float64),
        }
        if self.quantiles:
            statistics["_quantile"] = np.moveaxis(
                np.quantile(np.asarray(values), self.quantiles, axis=1), 0, 1
            )
        return statistics


@dataclass(frozen=True)
class Bench:
    """A sheet with the engine that serves it: ready to run cells."""

    plan: Plan
    sheet: Sheet
    job: Job
    systems: Systems
    chosen: Choice

    @property
    def steps(self) -> int:
        """Steps of one system."""
        return int(self.job.steps[-1])

    @property
    def times(self) -> np.ndarray:
        """Times of the frames."""
        return self.plan.steps(self.sheet.solver)[1]

    @property
    def notes(self) -> dict[str, Any]:
        """How it runs, for the recipe."""
        return {
            "engine": self.chosen.engine,
            "why": self.chosen.why,
            "rotated": self.chosen.rotated,
            "settling": self.job.delta is not None,
        }

    def run(
        self,
        cells: Sequence[tuple[int, ...]],
        summary: Summary,
        group: Group,
        keep: Keep | None,
        tally: Tally,
    ) -> dict[str, np.ndarray]:
        """What is kept of these cells, name -> (cells, ...); `group` says what is known already,
        and `keep` is told of what is new.
        """
        plan = self.plan
        swept = self._swept(cells, plan.repeats, plan.dtype)
        values = self._values(plan.ids(cells), swept, group, keep, tally)
        if PASSAGE in values and isinstance(self.sheet.solver, FixedStep):
            steps = np.asarray(values[PASSAGE], float)
            values = values | {PASSAGE: steps * float(self.sheet.solver.h)}
        values, known = checked(self, cells, values)
        passed = values.pop(PASSAGE, None)
        statistics = {
            name + suffix: array
            for name, whole in values.items()
            for suffix, array in summary.of(whole, len(cells)).items()
        }
        if passed is not None:
            passed = np.asarray(passed).reshape(len(cells), plan.repeats, -1)
            statistics |= passages(passed, self.times)
        _check_finite(statistics, plan, cells, known.get("scheme", np.zeros(len(cells))) < 0)
        return statistics | known

    def controlled(
        self,
        cells: Sequence[tuple[int, ...]],
        repeats: np.ndarray,
        solver: Solver,
        intervals: int = 1,
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the observables of some repeats of these cells by steps of controlled length in
        float64, and which systems reached the end.

        Noise enters `intervals` times in each step in which it is drawn, on one Brownian path.
        """
        plan = replace(self.plan, dtype="float64")
        rows = plan.repeats * np.arange(len(cells))[:, None] + repeats
        ids = plan.ids(cells)[rows.ravel()]
        with precision("float64"):
            # noise is drawn in the precision of the ensemble: other numbers would be another path
            job = replace(plan.job(self.sheet), solver=solver, dtype=self.plan.dtype)
            swept = self._swept(cells, len(repeats), "float64")
            systems = replace(self.systems, dtype="float64")
            packed = jax.default_backend() != "gpu"
            job, x, keys, swept = drawn(job, systems, ids, swept, self.chosen.rotated, packed)
            return run_controlled(job, x, keys, swept, intervals)

    def _swept(
        self, cells: Sequence[tuple[int, ...]], repeats: int, dtype: str
    ) -> list[np.ndarray]:
        """Return the swept numbers of each system, one array for each axis."""
        return [
            np.stack([axis.values[cell[k]] for cell in cells]).astype(dtype).repeat(repeats, axis=0)
            for k, axis in enumerate(self.plan.axes)
            if not axis.outer
        ]

    def _values(
        self,
        ids: np.ndarray,
        swept: list[np.ndarray],
        group: Group,
        keep: Keep | None,
        tally: Tally,
    ) -> dict[str, Any]:
        """The observables of these systems: those that are known, and those that run now.

        More than the memory holds run in pieces. What a system does depends on its own key only, so
        it does not matter who ran beside it, nor when.
        """
        rows, chunk = group.missing, self.chosen.chunk
        known = len(ids) - len(rows)
        if known:
            tally.add(known * self.steps)
        pieces = [rows[k : k + chunk] for k in range(0, len(rows), chunk)]
        # what is kept on disk meets on the host, so that a run that was interrupted has the same
        # means to the last digit; else it stays where it is
        split = len(pieces) > 1 or known > 0 or keep is not None
        parts = []
        for piece in pieces:

            def report(done: np.ndarray, values: Values, piece: np.ndarray = piece) -> None:
                if keep is not None:
                    keep(piece[done], {name: np.asarray(v)[done] for name, v in values.items()})
                tally.add(len(done) * self.steps)

            values = self.chosen.run(ids[piece], [axis[piece] for axis in swept], report)
            parts.append(
                {name: np.asarray(array) for name, array in values.items()} if split else values
            )
        if not known:
            return parts[0] if len(parts) == 1 else _joined(parts)
        for piece, values in zip(pieces, parts):
            group.put(piece, values)
        return dict(group.values)


def bench(plan: Plan, sheet: Sheet, engine: str, memory: float | None) -> Bench:
    """A sheet with the engine called `engine`, or the fastest that can do it."""
    job = plan.job(sheet)
    alike = plan.rotate and plan.matrices is None  # random matrices tell directions apart
    turn = alike and all(law.isotropic for law in plan.laws(sheet))
    end = float(plan.steps(sheet.solver)[1][-1])
    systems = Systems(sheet.dynamics, sheet.start, plan.matrices, plan.seed, plan.dtype, end, turn)
    chosen = choose(engine, job, systems, plan.repeats * sheet.count, memory)
    return Bench(plan, sheet, job, systems, chosen)


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _check_finite(
    values: dict[str, Any], plan: Plan, cells: Sequence[tuple[int, ...]], refused: np.ndarray
) -> None:
    """Raise where a value overflowed, in a cell that was not refused.

    Matrices of pairs may hold NaN, for tokens of weight zero; their errors may, for one repeat.
    """
    whole = {observable.name for observable in plan.observe if not observable.dims}
    for name, value in values.items():
        bad = ~np.isfinite(value).reshape(len(cells), -1).all(axis=1) & ~refused
        if name.removesuffix("_quantile") in whole and bad.any():
            told = zip(plan.axes, cells[int(bad.argmax())])
            where = "".join(f", {axis.name} = {axis.coordinate[k]:g}" for axis, k in told)
            what = f"{name} of {type(plan.dynamics).__name__}{where.replace(',', ' at', 1)}"
            ways = remedies(plan.dynamics, plan.dtype, plan.observe)
            raise SimulationError(f"{what} is not finite in {plan.dtype}: it overflowed; {ways}")

"""An ensemble that is written to a store block by block, and goes on from what is there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.engines.memory import free
from tokenflock.errors import SimulationError, UserError
from tokenflock.precision import precision
from tokenflock.sweeps.cut import Cut, rectangle
from tokenflock.sweeps.reading import lazily, read
from tokenflock.sweeps.store import Store, Values
from tokenflock.sweeps.unfinished import Group
from tokenflock.verbs.asked import Request
from tokenflock.verbs.cells import Bench, Keep, Tally, bench

WORK = 2e9  # multiplications of a block: some seconds of a core
BYTES = 2**26  # of the results of a block
BLOCKS = 64  # at least so many, where there are cells enough
SLOTS = 256  # systems that a CPU likes to run at once
SHEETS = 16  # whose engines are kept
MEMORY = 2e9  # bytes that the work may take at once: the same everywhere, and so the same numbers


def to_store(asked: Request, path: str | os.PathLike[str]) -> xr.Dataset:
    """Fill a store with an ensemble, from where it has come to, and open it."""
    desk = Desk(asked)
    desk.check()
    with Store(path) as store, _worth_keeping(store):
        store.begin(asked.mark(), cut(asked), asked.told())
        tally = Tally(asked.plan.total_steps(), asked.options.progress)
        missing = np.flatnonzero(~store.progress.done)
        if len(missing) < len(store.cut):
            tally.add(
                sum(desk.steps(store.cut, int(k)) for k in np.flatnonzero(store.progress.done))
            )
        for block in missing.tolist():
            _fill(desk, store, block, tally)
    return opened(path)


@contextmanager
def _worth_keeping(store: Store) -> Iterator[None]:
    """Scope of a run that leaves no store behind where it ends in an error before anything is in
    it: that would stand in the way of other runs. What was stopped from outside goes on.
    """
    new = not store.exists
    try:
        yield
    except (UserError, SimulationError):  # the same command would end so again
        if new and store.exists and not store.look().progress.done.any():
            store.remove()
        raise


def opened(path: str | os.PathLike[str]) -> xr.Dataset:
    """The result in a store: read, or, where it is large, left on the disk until it is used."""
    store = Store(path).look()
    size = sum(array.nbytes for array in store.arrays.values())
    return read(store) if size <= free() / 4 else lazily(store)


def _fill(desk: Desk, store: Store, block: int, tally: Tally) -> None:
    """Compute one block and write it; what is done of it is kept when it is interrupted."""
    began, cells = time.perf_counter(), store.cut.cells(block)
    group = store.unfinished.open(block, len(cells) * desk.asked.plan.repeats)
    try:
        values, notes = desk.run(cells, group, store.unfinished.keep, tally)
    except KeyboardInterrupt:
        store.unfinished.write()
        raise
    if store.lacks_form:
        store.prepare(desk.asked.form(list(values), notes), values)
    store.put(block, values, time.perf_counter() - began)
    store.unfinished.close()


class Desk:
    """Where blocks of an ensemble are computed: it keeps the engines of the last sheets."""

    def __init__(self, asked: Request) -> None:
        self.asked = asked
        self.benches: dict[Any, Bench] = {}

    def run(
        self,
        cells: list[tuple[int, ...]],
        group: Group | None = None,
        keep: Keep | None = None,
        tally: Tally | None = None,
    ) -> tuple[Values, dict[str, Any]]:
        """(values of these cells of one sheet, name -> (cells, ...), how they ran)."""
        plan = self.asked.plan
        group = group or Group(np.zeros(len(cells) * plan.repeats, bool))
        with precision(plan.dtype):
            bench = self._bench(cells[0])
            values = bench.run(
                cells, self.asked.summary, group, keep or _forget, tally or Tally(0, None)
            )
        return {name: np.asarray(array) for name, array in values.items()}, bench.notes

    def check(self) -> None:
        """Refuse an engine that cannot do it, before anything is made."""
        with precision(self.asked.plan.dtype):
            self._bench((0,) * len(self.asked.plan.shape))

    def steps(self, cut: Cut, block: int) -> int:
        """Steps of all systems of a block."""
        plan = self.asked.plan
        corner = tuple(each.start for each in cut.ranges(block))
        swept = any(axis.path[0] == "solver" for axis in plan.axes)
        solver = plan.sheet(corner).solver if swept else plan.solver
        return cut.size(block) * plan.repeats * int(plan.steps(solver)[0][-1])

    def _bench(self, cell: tuple[int, ...]) -> Bench:
        plan, options = self.asked.plan, self.asked.options
        key = tuple(k for axis, k in zip(plan.axes, cell) if axis.outer)
        if key not in self.benches:
            if len(self.benches) >= SHEETS:
                self.benches.clear()
            memory = options.memory or MEMORY
            self.benches[key] = bench(plan, plan.sheet(cell), options.engine, memory)
        return self.benches[key]


def _forget(rows: np.ndarray, values: Any) -> None:
    """Keep nothing of single systems."""


def cut(asked: Request, cells: int | None = None) -> Cut:
    """The grid of an ensemble in blocks: of some seconds of work, and enough of them to share out,
    unless so many cells for each are asked for.
    """
    plan = asked.plan
    total = int(np.prod(plan.shape, dtype=float))
    if cells is None:
        few = min(-(-SLOTS // plan.repeats), -(-total // 8))
        cells = int(min(max(WORK / cost(asked), 1), max(few, -(-total // BLOCKS))))
        cells = max(1, min(cells, int(BYTES / max(cell_bytes(asked), 1))))
    single = [axis.outer for axis in plan.axes]
    names = tuple(axis.name for axis in plan.axes)
    return Cut(names, plan.shape, rectangle(plan.shape, single, cells))


def costs(asked: Request, cut: Cut) -> np.ndarray:
    """About what each block costs, (blocks,): the work of a cell is a product over the axes."""
    plan, first = asked.plan, cost(asked)
    whole = cut.sizes() * first
    factors = np.ones(1)
    for k, (count, step) in enumerate(zip(cut.counts, cut.chunk)):
        along = np.ones(count)
        if k < len(plan.axes) and plan.axes[k].outer:
            corner = [0] * len(plan.axes)
            for at in range(count):
                corner[k] = at * step
                along[at] = cost(asked, tuple(corner)) / first
        factors = np.multiply.outer(factors, along).ravel()
    return whole * factors


def cost(asked: Request, cell: tuple[int, ...] | None = None) -> float:
    """About how many multiplications one cell takes: steps x repeats x n (n + 8) d."""
    plan = asked.plan
    sheet = plan.sheet(cell or (0,) * len(plan.shape))
    n, d = sheet.start.shape
    steps = int(plan.steps(sheet.solver)[0][-1])
    return float(steps) * plan.repeats * n * (n + 8) * d


def cell_bytes(asked: Request) -> int:
    """Bytes of the results of one cell."""
    plan, summary = asked.plan, asked.summary
    n, d = plan.start.shape
    frames = len(plan.steps(plan.solver)[0])
    x, w = jax.ShapeDtypeStruct((n, d), jnp.float32), jax.ShapeDtypeStruct((n,), jnp.float32)
    size = 0
    for observable in plan.observe:
        measure: Callable[..., Any] = observable.bind(plan.dynamics).measure
        numbers = frames * int(np.prod(jax.eval_shape(measure, x, w).shape, dtype=float))
        each = 4 if plan.dtype == "float32" else 8
        size += numbers * (
            plan.repeats * each if summary.keep else 8 * (2 + len(summary.quantiles))
        )
    if plan.until is not None:
        levels = max(1, int(np.prod([len(each) for each in plan.until.levels.values()])))
        size += 8 * levels * (2 * plan.repeats + 2 * frames + 4)
    return size

"""What a worker does: blocks of a sweep, by its recipe and their cells. It writes nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock import catalogue
from tokenflock import recipe as recipes
from tokenflock.sweeps.cut import Cell
from tokenflock.verbs.asked import Request, asked
from tokenflock.verbs.filling import Desk
from tokenflock.verbs.schedule import When

_OPTIONS = (
    "matrices",
    "keep",
    "quantiles",
    "dtype",
    "engine",
    "rotate",
    "settle",
    "tolerance",
    "part",
)
_ONE = threading.Lock()  # a process computes one block at a time, whatever its threads


@dataclass(frozen=True)
class Order:
    """A sweep as workers are told of it: data, and files of the user's own laws."""

    recipe: str
    memory: float | None = None
    batches: int = 0  # batches of repeats that a cell may have; 0 where there is no such axis
    imports: tuple[str, ...] = ()
    compiled: str | None = None  # where compiled code is kept


@dataclass(frozen=True)
class BlockNumbers:
    """A block: name -> (cells, ...), how it ran, and how long it took."""

    values: dict[str, np.ndarray]
    notes: dict[str, Any]
    seconds: float


def order(wanted: Request, batches: int = 0) -> Order:
    """What workers need to know of a sweep."""
    import jax

    files = {sys.modules[entry.module].__file__ for entry in catalogue.brought()}
    own = tuple(sorted(str(Path(file).resolve()) for file in files if file))
    compiled: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    return Order(recipes.dumps(wanted.recipe()), wanted.options.memory, batches, own, compiled)


def compute(order: Order, cells: Sequence[Cell]) -> BlockNumbers:
    """The cells of one block. With batches, the last number of a cell is that of its batch."""
    with _ONE:
        began = time.perf_counter()
        desk = _desk(order, cells[0][-1] if order.batches else 0)
        plain = [cell[:-1] for cell in cells] if order.batches else list(cells)
        values, notes = desk.run(plain)
        return BlockNumbers(values, notes, time.perf_counter() - began)


def batch_of(wanted: Request, batch: int, batches: int) -> Request:
    """The same ensemble, of its further repeats: those of one of `batches` times as many."""
    count = wanted.plan.repeats
    places = range(batch * count, (batch + 1) * count)
    return replace(wanted, plan=replace(wanted.plan, part={"repeat": (places, batches * count)}))


@lru_cache(maxsize=16)
def _desk(order: Order, batch: int) -> Desk:
    wanted = _asked(order)
    return Desk(batch_of(wanted, batch, order.batches) if order.batches else wanted)


@lru_cache(maxsize=2)
def _asked(order: Order) -> Request:
    """The ensemble of a recipe, checked anew."""
    if order.compiled is not None:
        import jax

        jax.config.update("jax_compilation_cache_dir", order.compiled)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    for file in order.imports:
        if Path(file).stem not in sys.modules:
            catalogue.include(Path(file))
    recipe = recipes.loads(order.recipe)
    options: Any = {name: recipe[name] for name in _OPTIONS} | {"memory": order.memory}
    return asked(
        recipe["dynamics"],
        recipe["start"],
        recipe["over"],
        recipe["repeats"],
        When(recipe["t"], recipe["times"], recipe["frames"]),
        recipe["solver"] if recipe["solver_given"] else None,
        recipe["observe"],
        recipe["until"],
        recipe["seed"],
        options,
    )

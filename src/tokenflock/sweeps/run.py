"""`sweep`: a spec in, a store out, whatever happens on the way."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.engines.job import PASSAGE
from tokenflock.files import NoSpace
from tokenflock.sweeps.crews import Crew, Outcome, crew, in_words
from tokenflock.sweeps.own import own_file
from tokenflock.sweeps.pooling import BATCH
from tokenflock.sweeps.refine import Closer
from tokenflock.sweeps.spec import Spec, read_spec
from tokenflock.sweeps.store import HOME, Form, Store
from tokenflock.sweeps.worker import BlockNumbers, batch_of, order
from tokenflock.verbs.accuracy import judged
from tokenflock.verbs.asked import Request
from tokenflock.verbs.filling import Desk, costs, opened

TRIES = 3  # after so many failures a block is given up


@dataclass
class SweepView:
    """How far a sweep has come, for those who watch."""

    blocks: int
    done: int
    failed: int = 0
    running: int = 0
    cells: int = 0  # done
    of_cells: int = 0
    share: float = 0.0  # of the work that is done
    begun: float = 0.0  # the share that was done when this run began
    seconds: float = 0.0  # of this run
    crew: str = "this process"
    told: Callable[[SweepView], None] = field(default=lambda view: None, repr=False)

    @property
    def left(self) -> float:
        """Seconds that the rest will take, at the rate of this run; NaN where that is not known."""
        new = self.share - self.begun
        return self.seconds * (1 - self.share) / new if new > 0 else float("nan")


def sweep(
    spec: Spec | str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    processes: int = 1,
    dask: str | None = None,
    watch: Callable[[SweepView], None] | None = None,
) -> xr.Dataset:
    """Run a sweep into a store, from where it has come to, and open the result.

    Args:
      spec: a `Spec`, or the path of one in TOML.
      store: a folder; the same call goes on from what is there.
      processes: how many processes of this machine compute; each takes its share of the cores.
      dask: the address of a Dask scheduler, whose workers compute.
      watch: called with a `SweepView` whenever a block ends.

    What comes of it does not depend on who computes, nor on what was interrupted. A block that
    fails three times is noted in the store with its error, and the rest goes on; a later call tries
    it again.

    >>> import tempfile
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> spec = Spec(SelfAttention(), Uniform(n=4, d=2), {"beta": [1.0, 4.0]}, repeats=8, frames=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep(spec, folder + "/small.zarr").pair_density.dims
    ('beta', 'time')
    """
    spec = spec if isinstance(spec, Spec) else read_spec(spec)
    fill(spec, store, processes=processes, dask=dask, watch=watch)
    return judged(opened(store), spec.asked().plan, stored=True)


def fill(
    spec: Spec,
    store: str | os.PathLike[str],
    *,
    processes: int = 1,
    dask: str | None = None,
    watch: Callable[[SweepView], None] | None = None,
) -> None:
    """Run a sweep into a store, which is not opened then. See `sweep`."""
    wanted = spec.asked()
    spec.cut(wanted)  # refuses what cannot be kept before a folder is made
    batches = 0 if spec.refine is None or spec.refine.error is None else spec.refine.batches
    with Store(store) as kept, ExitStack() as stack:
        begin(kept, spec, wanted)
        hired = crew(order(wanted, batches), processes, dask)
        if hired is not None:
            stack.callback(hired.close)
        journey = Journey(kept, wanted, batches, hired, watch)
        journey.say(f"begins: {journey.view.crew}, {journey.view.done} blocks are done")
        while blocks := _next(kept, spec, wanted, journey.given_up):
            journey.go(blocks)
            if spec.refine is None:
                break
        journey.say("ends")


def begin(store: Store, spec: Spec, wanted: Request) -> None:
    """Open the store of a spec: a new one, or the one that this spec has begun."""
    whole = spec.cut(wanted)
    notes = {} if spec.refine is None else {"repeats": wanted.plan.repeats, "refined": True}
    store.begin(mark(spec, wanted), whole, wanted.told(), notes)
    facts = {"versions": recipes.versions("jax", "numpy"), "host": platform.node()}
    store.note(facts | {"time": time.strftime("%Y-%m-%d %H:%M:%S")})


def mark(spec: Spec, wanted: Request) -> str:
    """What tells a sweep from any other."""
    plain = wanted.mark()
    if spec.refine is None:
        return plain
    return hashlib.sha256(f"{plain} {recipes.dumps(spec.refine.recipe())}".encode()).hexdigest()


def _next(store: Store, spec: Spec, wanted: Request, given_up: set[int]) -> list[int]:
    """The blocks to compute next, the costly ones first."""
    if spec.refine is None:
        left = np.flatnonzero(~store.progress.done)
        return left[np.argsort(-costs(wanted, store.cut)[left], kind="stable")].tolist()
    for block in [block for block in store.progress.failed if block not in given_up]:
        del store.progress.failed[block]  # of an earlier run: tried again
    return Closer(spec.refine, store, spec.refine.named(wanted)).missing()


def formed(wanted: Request, batches: int, names: list[str], notes: dict[str, Any]) -> Form:
    """The arrays of a store: those of an ensemble, with an axis of batches where there is one."""
    form = wanted.form(names, notes)
    if not batches:
        return form
    lead = len(wanted.plan.axes)
    variables = {
        name: ((*dims[:lead], BATCH, *dims[lead:]), attrs)
        for name, (dims, attrs) in form.variables.items()
    }
    notes = {"long_name": "batch of repeats"}
    coords = {**form.coords, BATCH: ((BATCH,), np.arange(batches), notes)}
    return replace(form, variables=variables, coords=coords)


def log_file(store: Store) -> Path:
    """The file that tells in words what happened to a store."""
    return store.path / HOME / "log.txt"


class Journey:
    """One run of a sweep: blocks are given out, taken back, tried again, written."""

    def __init__(
        self,
        store: Store,
        wanted: Request,
        batches: int,
        hired: Crew | None,
        watch: Callable[[SweepView], None] | None,
    ) -> None:
        self.store, self.wanted, self.batches = store, wanted, batches
        self.hired: Crew = hired or Alone(store, wanted, batches)
        self.failures: Counter[int] = Counter()
        self.given_up: set[int] = set()
        self.sizes, self.costs = store.cut.sizes(), costs(wanted, store.cut)
        self.began = time.monotonic()
        done = store.progress.done
        share = float(self.costs[done].sum() / self.costs.sum())
        self.view = SweepView(
            blocks=len(done),
            done=int(done.sum()),
            cells=int(self.sizes[done].sum()),
            of_cells=store.cut.total,
            share=share,
            begun=share,
            crew=self.hired.name,
            told=watch or (lambda view: None),
        )

    def go(self, blocks: Iterable[int]) -> None:
        """Compute these blocks, each until it is written or has failed three times."""
        waiting, running = deque(blocks), 0
        while waiting or running:
            running += self._give(waiting)
            self._show(running)
            block, outcome = self.hired.take()
            running -= 1
            if isinstance(outcome, BlockNumbers):
                running += self._give(waiting)  # nobody waits while this one is written
                self._write(block, outcome)
            elif self._failed(block, outcome):
                waiting.append(block)
            self._show(running)

    def _give(self, waiting: deque[int]) -> int:
        """Hand out blocks while there is room; how many."""
        given = 0
        while waiting and self.hired.room > 0:
            block = waiting.popleft()
            self.hired.give(block, self.store.cut.cells(block))
            given += 1
        return given

    def _write(self, block: int, outcome: BlockNumbers) -> None:
        store = self.store
        if not store.progress.done[block]:
            if store.lacks_form:
                store.prepare(
                    formed(self.wanted, self.batches, list(outcome.values), outcome.notes),
                    outcome.values,
                )
            store.put(block, outcome.values, outcome.seconds)
        store.unfinished.close()
        self.view.done += 1
        self.view.cells += int(self.sizes[block])
        self.view.share += float(self.costs[block] / self.costs.sum())
        self.say(f"block {block} is done ({outcome.seconds:.3g} s)")

    def _failed(self, block: int, error: str) -> bool:
        """Note a failure; whether the block is tried again."""
        self.failures[block] += 1
        self.say(f"block {block} failed ({self.failures[block]} of {TRIES}): {error}")
        if self.failures[block] < TRIES:
            return True
        self.store.fail(block, error)
        self.given_up.add(block)
        self.view.failed += 1
        return False

    def _show(self, running: int) -> None:
        self.view.running = running
        self.view.seconds = time.monotonic() - self.began
        self.view.told(self.view)

    def say(self, words: str) -> None:
        """One line in the log file; a full disk is told by those who need it."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n"
        with suppress(OSError):
            handle = own_file(log_file(self.store), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with open(handle, "a", encoding="utf-8") as file:
                file.write(line)


class Alone:
    """This process computes by itself, and keeps what is done of the block that runs."""

    def __init__(self, store: Store, wanted: Request, batches: int) -> None:
        self.name = "this process"
        self.store, self.wanted, self.batches = store, wanted, batches
        self.desks: dict[int, Desk] = {}
        self.next: int | None = None

    @property
    def workers(self) -> int:
        """One."""
        return 1

    @property
    def room(self) -> int:
        """One block at a time."""
        return int(self.next is None)

    def give(self, block: int, cells: Any) -> None:
        """The block to compute next."""
        self.next = block

    def take(self) -> tuple[int, Outcome]:
        """Compute it."""
        block, self.next = self.next or 0, None
        cells = self.store.cut.cells(block)
        began, unfinished = time.perf_counter(), self.store.unfinished
        try:
            group = unfinished.open(block, len(cells) * self.wanted.plan.repeats, self._names)
            desk = self._desk(cells[0][-1] if self.batches else 0)
            plain = [cell[:-1] for cell in cells] if self.batches else cells
            values, notes = desk.run(plain, group, unfinished.keep)
        except KeyboardInterrupt:
            unfinished.write()
            raise
        except NoSpace:
            raise
        except Exception as error:
            unfinished.doubt()
            return block, in_words(error)
        return block, BlockNumbers(values, notes, time.perf_counter() - began)

    def close(self) -> None:
        """Nothing to end."""

    @property
    def _names(self) -> list[str]:
        """What is kept of each system."""
        plan = self.wanted.plan
        passed = [] if plan.until is None else [PASSAGE]
        return [observable.name for observable in plan.observe] + passed

    def _desk(self, batch: int) -> Desk:
        if batch not in self.desks:
            whole = self.wanted
            self.desks[batch] = Desk(
                batch_of(whole, batch, self.batches) if self.batches else whole
            )
        return self.desks[batch]

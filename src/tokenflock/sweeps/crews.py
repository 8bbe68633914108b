"""Who computes the blocks: this process, several processes of this machine, or a Dask cluster.

All of them take blocks and give back what came of them, in any order. What comes of a block is the
same whoever computes it.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from tokenflock.errors import SimulationError, UserError, require
from tokenflock.sweeps.cut import Cell
from tokenflock.sweeps.worker import BlockNumbers, Order, compute

Outcome = BlockNumbers | str  # a block, or why it could not be computed


class Crew(Protocol):
    """Who computes blocks."""

    name: str

    @property
    def workers(self) -> int:
        """How many blocks are computed at once."""
        ...

    @property
    def room(self) -> int:
        """How many more blocks may be given to it now."""
        ...

    def give(self, block: int, cells: Sequence[Cell]) -> None:
        """One block more to compute."""

    def take(self) -> tuple[int, Outcome]:
        """The next block that is computed, or that failed."""
        ...

    def close(self) -> None:
        """Nothing more is asked for."""


def in_words(error: BaseException) -> str:
    """An error as one line of a log."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


class Processes:
    """Processes of this machine, each with its share of the cores and of the GPUs.

    One that dies is replaced, and its block is told as failed.
    """

    def __init__(self, order: Order, count: int) -> None:
        self.name = f"{count} processes"
        self.order = order
        self.context = multiprocessing.get_context("spawn")
        self.hands: list[_Hand] = [self._hire(k, count) for k in range(count)]
        self.count = count

    @property
    def workers(self) -> int:
        """How many processes there are."""
        return self.count

    @property
    def room(self) -> int:
        """How many processes have nothing to do."""
        return sum(hand.block is None for hand in self.hands)

    def give(self, block: int, cells: Sequence[Cell]) -> None:
        """Give a block to a process that has nothing to do."""
        hand = next(hand for hand in self.hands if hand.block is None)
        hand.block = block
        with suppress(OSError):  # one that died is seen when its answer is waited for
            hand.line.send((block, list(cells)))

    def take(self) -> tuple[int, Outcome]:
        """The next answer."""
        while True:
            ready = wait([hand.line for hand in self.hands if hand.block is not None])
            hand = next(hand for hand in self.hands if hand.line is ready[0])
            try:
                block, outcome = hand.line.recv()
            except (EOFError, OSError):
                block = hand.block
                hand.process.join(5)
                code = hand.process.exitcode
                place = self.hands.index(hand)
                self.hands[place] = self._hire(place, self.count)
                return int(block or 0), f"the process that computed it died (exit code {code})"
            hand.block = None
            return block, outcome

    def close(self) -> None:
        """End the processes."""
        for hand in self.hands:
            hand.process.terminate()
        for hand in self.hands:
            hand.process.join(5)
            hand.line.close()

    def _hire(self, number: int, count: int) -> _Hand:
        ours, theirs = self.context.Pipe()
        where = _cores(number, count), _card(number)
        process = self.context.Process(
            target=_serve, args=(theirs, self.order, where, os.getpid()), daemon=True
        )
        process.start()
        theirs.close()
        return _Hand(process, ours)


class _Hand:
    """A process, the line to it, and the block that it computes."""

    def __init__(self, process: Any, line: Any) -> None:
        self.process = process
        self.line = line
        self.block: int | None = None


def _serve(line: Connection, order: Order, where: tuple[list[int], str | None], owner: int) -> None:
    """What a process does: compute what it is given, until its owner is gone."""
    cores, card = where
    if cores and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, cores)
    if card is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = card
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, who ends us
    threading.Thread(target=_follow, args=(owner,), daemon=True).start()
    while True:
        try:
            block, cells = line.recv()
        except (EOFError, OSError):
            return
        try:
            outcome: Outcome = compute(order, cells)
        except Exception as error:
            outcome = in_words(error)
        try:
            line.send((block, outcome))
        except OSError:
            return


def _follow(owner: int) -> None:
    """End this process when its owner is gone, however that ended."""
    while os.getppid() == owner:
        time.sleep(0.5)
    os._exit(1)


def _cores(number: int, count: int) -> list[int]:
    """The share of the cores of one of so many processes; none where it cannot be told."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    there = sorted(os.sched_getaffinity(0))
    return there[number::count] if count <= len(there) else [there[number % len(there)]]


def _card(number: int) -> str | None:
    """The GPU of a process, where there are several."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    folder = Path("/proc/driver/nvidia/gpus")
    if named is None and folder.is_dir():
        named = ",".join(str(k) for k in range(len(list(folder.iterdir()))))
    cards = [card for card in (named or "").split(",") if card]
    return cards[number % len(cards)] if len(cards) > 1 else None


def connected(address: str) -> Any:
    """A client of the Dask scheduler at an address, or one clear line."""
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            "--dask needs dask.distributed; install it with: pip install 'tokenflock[sweeps]'"
        ) from None
    try:
        return Client(address, timeout=20, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address} ({in_words(error):.120}); start one with: dask"
            " scheduler"
        ) from None


def side_by_side(
    address: str, work: Callable[..., Any], each: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Callable[[], Any]]]:
    """Call `work` with each of these arguments on the workers of a cluster. Yields the number of
    one that ended, and a function that gives what came of it or raises its error.
    """
    client = connected(address)
    try:
        from distributed import as_completed

        calls = [client.submit(work, *given, pure=False) for given in each]
        numbers = {call.key: k for k, call in enumerate(calls)}
        for call in as_completed(calls, loop=client.loop):
            yield numbers[call.key], call.result
    finally:
        with suppress(Exception):
            client.close()


class Cluster:
    """The workers of a Dask cluster. Its scheduler gives the blocks of a worker that died to
    another one.
    """

    def __init__(self, order: Order, address: str) -> None:
        self.client = connected(address)
        from distributed import as_completed

        self.name, self.order = f"Dask at {address}", order
        self.address = address
        self.coming = as_completed([], loop=self.client.loop)
        self.blocks: dict[str, int] = {}
        self.given = 0

    @property
    def workers(self) -> int:
        """How many workers the cluster has now."""
        return len(self.client.scheduler_info(n_workers=-1).get("workers", {}))

    @property
    def room(self) -> int:
        """Two blocks for each worker, so that none waits for the next one."""
        return max(2 * self.workers, 2) - len(self.blocks)

    def give(self, block: int, cells: Sequence[Cell]) -> None:
        """Give a block to the scheduler."""
        self.given += 1
        key = f"tokenflock-{os.getpid()}-{block}-{self.given}"
        future = self.client.submit(compute, self.order, list(cells), key=key, pure=False)
        self.blocks[key] = block
        self.coming.add(future)

    def take(self) -> tuple[int, Outcome]:
        """The next answer; one that was lost with its worker is computed again, and waited for."""
        future = next(self.coming)
        block = self.blocks.pop(future.key)
        try:
            error = future.exception()
            outcome: Outcome = future.result() if error is None else in_words(error)
        except CancelledError:
            raise SimulationError(
                f"the Dask scheduler at {self.address} is gone; what is done is kept, and the same"
                " command goes on from there"
            ) from None
        future.release()
        return block, outcome

    def close(self) -> None:
        """Leave the cluster as it was."""
        with suppress(Exception):
            self.client.close()


def crew(order: Order, processes: int, dask: str | None) -> Crew | None:
    """Those who are asked for; None where this process does it by itself."""
    require(processes >= 1, "processes", "1 or more", processes)
    require(dask is None or processes == 1, "processes", "left out with dask", processes)
    if dask is not None:
        return Cluster(order, dask)
    return Processes(order, processes) if processes > 1 else None

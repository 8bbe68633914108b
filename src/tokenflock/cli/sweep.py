"""`tokenflock sweep`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tokenflock.cli import stopping
from tokenflock.cli.console import complain, errors, keep_compiled, say
from tokenflock.cli.values import counted
from tokenflock.errors import UserError

SHOWN = 10  # failed or damaged blocks that are shown one by one


@Parameter(name="*")
@dataclass(frozen=True)
class InsteadOptions:
    """What to do instead of running."""

    dry_run: Annotated[
        bool, Parameter(help="print cells, memory and expected time, from a trial", negative=())
    ] = False
    status: Annotated[
        bool, Parameter(help="how far a store is; it may be running", negative=())
    ] = False
    check: Annotated[
        bool, Parameter(help="read a store in full and name damaged blocks", negative=())
    ] = False
    repair: Annotated[
        bool,
        Parameter(
            help="forget damaged blocks; with a spec they are computed again at once", negative=()
        ),
    ] = False


def command(tokens: Sequence[str]) -> Callable[..., int]:
    """The command, whatever follows it."""
    return sweep


def sweep(
    spec: Annotated[
        Path | None,
        Parameter(help="the spec, a TOML file; for --status, --check, --repair also a store"),
    ] = None,
    /,
    *,
    store: Annotated[Path | None, Parameter(help="the folder (zarr) to fill")] = None,
    processes: Annotated[int, Parameter(help="processes of this machine that compute")] = 1,
    dask: Annotated[
        str | None,
        Parameter(help="address of a Dask scheduler, e.g. tcp://10.0.0.1:8786, whose workers do"),
    ] = None,
    instead: InsteadOptions = InsteadOptions(),
) -> int:
    """Run a grid of systems from a spec into a store, block by block.

    The same command goes on after Ctrl-C, kill -9, a full disk or a lost worker, and ends with the
    same numbers, bit for bit. xarray opens the store by itself: `xarray.open_zarr("big.zarr")`. A
    block that fails three times is noted and the rest goes on; the exit code is 1 then.

    Example: `tokenflock sweep spec.toml --store big.zarr --processes 2`

    Example: `tokenflock sweep spec.toml --dry-run`

    Example: `tokenflock sweep spec.toml --store big.zarr --dask tcp://10.0.0.1:8786`

    Example: `tokenflock sweep --status big.zarr` (from another terminal)

    Example: `tokenflock sweep --check big.zarr`, then `tokenflock sweep spec.toml --store big.zarr
    --repair`

    Example: `tokenflock plot big.zarr --out so-far.png`
    """
    looks = instead.status or instead.check or instead.repair
    if looks and store is None:
        spec, store = None, spec
    if instead.status:
        return _status(_needed(store))
    if instead.check:
        return _check(_needed(store))
    if instead.repair:
        _repair(_needed(store))
        if spec is None:
            return 0
    if spec is None:
        raise UserError("sweep needs a spec, a TOML file; write e.g. tokenflock sweep spec.toml")
    from tokenflock.sweeps import SpecError, read_spec

    try:
        read = read_spec(spec)
    except SpecError as error:
        for mistake in error.mistakes:
            complain(mistake)
        return 2
    if instead.dry_run:
        return _forecast(read, processes)
    return _run(read, _needed(store), processes, dask)


def _needed(store: Path | None) -> Path:
    if store is None:
        raise UserError("sweep needs a folder for its results; write e.g. --store big.zarr")
    return store


def _run(spec: Any, store: Path, processes: int, dask: str | None) -> int:
    from tokenflock.sweeps import status
    from tokenflock.sweeps.run import fill, log_file
    from tokenflock.sweeps.store import Store

    keep_compiled()
    stopping.goes_on(f"what is done is in {store}, and the same command goes on from there")
    with _watched() as watch:
        fill(spec, store, processes=processes, dask=dask, watch=watch)
    now = status(store)
    for block, error in list(now.failed.items())[:SHOWN]:
        complain(f"block {block} failed three times: {error}")
    say(f": {_cells(now)}, {_time(now.seconds)} of computing", title=str(store))
    say(f"  what happened is told in {log_file(Store(store))}")
    say(f"  see it with: tokenflock plot {store} --out {store.with_suffix('.png')}")
    return 1 if now.failed else 0


def _status(store: Path) -> int:
    from tokenflock.sweeps import status

    now = status(store)
    say(f", {now.title.removeprefix('tokenflock: ')}", title=str(store))
    say(f"  {_cells(now)}")
    work = "a process is at work" if now.running else "nobody is at work"
    say(f"  {work}; {_time(now.seconds)} of computing so far")
    if not now.complete and not math.isnan(now.left):
        say(f"  about {_time(now.left)} of computing are left, for the full grid")
    for block, error in list(now.failed.items())[:SHOWN]:
        say(f"  block {block} failed: {error}")
    return 0


def _cells(now: Any) -> str:
    failed = f", {len(now.failed):,} failed" if now.failed else ""
    return (
        f"{now.cells:,} of {now.of_cells:,} cells are done"
        f" ({now.done:,} of {now.blocks:,} blocks{failed})"
    )


def _check(store: Path) -> int:
    from tokenflock.sweeps import check

    damaged = check(store)
    for block in damaged[:SHOWN]:
        complain(f"block {block} is damaged")
    if damaged:
        mend = f"tokenflock sweep SPEC.toml --store {store} --repair"
        say(f"{counted(len(damaged), 'damaged block')}; compute them again with: {mend}")
        return 1
    say(f"{store}: all that is done is as it was written")
    return 0


def _repair(store: Path) -> None:
    from tokenflock.sweeps import repair

    count = counted(len(repair(store)), "damaged block")
    say(f"{store}: {count} forgotten; the next run computes what is missing")


def _forecast(spec: Any, processes: int) -> int:
    from tokenflock.engines.memory import in_words
    from tokenflock.sweeps import forecast

    keep_compiled()
    told = forecast(spec)
    grid = " x ".join(f"{name} ({count:,})" for name, count in told.axes.items()) or "one cell"
    say(f"{told.cells:,} cells: {grid}; {told.systems:,} systems")
    say(f"{told.blocks:,} blocks, {in_words(told.block_bytes)} each; {in_words(told.bytes)} in all")
    seconds = told.seconds / processes
    say(f"about {_time(seconds)} with --processes {processes} (by a trial of {told.trial:.1f} s)")
    return 0


def _time(seconds: float) -> str:
    """Seconds as people say them.

    >>> _time(5400), _time(3.2), _time(200_000)
    ('1.5 hours', '3.2 seconds', '2.3 days')
    """
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.2g} {name}"
    return f"{seconds:.2g} seconds"


@contextmanager
def _watched() -> Iterator[Callable[[Any], None]]:
    """A live view on terminals: done, running, failed, rate, time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("sweep", total=1.0, told="")

        def watch(view: Any) -> None:
            stopping.check()
            new = view.share - view.begun
            rate = view.of_cells * new / view.seconds if view.seconds > 0 else 0.0
            left = "" if math.isnan(view.left) else f", {_time(view.left)} left"
            told = f"{view.cells:,}/{view.of_cells:,} cells, {view.running} blocks running"
            told += f", {view.failed} failed" if view.failed else ""
            bar.update(task, completed=view.share, told=f"{told}, {rate:.2g} cells/s{left}")

        yield watch

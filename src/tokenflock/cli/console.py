"""What a person sees: tables, one-line errors, progress."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tokenflock.cli import stopping
from tokenflock.files import cache_folder


class Screen(Console):
    """A console that lets a closed pipe be an error, where rich exits with the code 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled."""
        raise


console = Screen(highlight=False)
errors = Screen(stderr=True, highlight=False)
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but the tab and the end of a line
WAITING = "compiling, once for this size, unless that is done"


def visible(text: str) -> str:
    """A text of a file or of a model as a terminal may show it: no character in it steers the
    terminal.

    >>> visible("red \\x1b[31m") == "red \ufffd[31m"
    True
    """
    return _STEERING.sub("\ufffd", text)


def complain(message: str) -> None:
    """One sentence on standard error: in lines of whole words on a terminal, else in one line."""
    words = " ".join(visible(message).split())
    text = Text.assemble(("error:", "bold red"), " ", words)
    hanging(text, 7, errors)


def hanging(text: Text, indent: int, where: Console = console) -> None:
    """A text whose further lines are indented; no word is broken that fits into a line. What is no
    terminal gets one line.
    """
    if not where.is_terminal or where.width <= indent + 10:
        where.print(text, soft_wrap=True)
        return
    first, *_ = text.wrap(where, where.width) or [text]
    rest = text[len(first.plain) :]
    while rest.plain.startswith(" "):
        rest = rest[1:]
    where.print(first, soft_wrap=True)
    if rest.plain:
        where.print(Padding(rest, (0, 0, 0, indent)))


def described(name: str, text: str, width: int) -> None:
    """A name in full, and what it is beside it, further lines indented to the same place; below it
    where the name is wider than its column.
    """
    if len(name) < width:
        line = Text.assemble((f"{name:<{width}}", "cyan"), text)
        hanging(line, width)
    else:
        console.print(Text(name, style="cyan"), soft_wrap=True)
        hanging(Text(" " * width + text), width)


def say(text: str, title: str = "", indent: int = 0) -> None:
    """A line on standard output, after a bold title; no text in it is read as markup.

    With an indent it is several lines on a terminal that is too narrow (see `hanging`).
    """
    whole = Text.assemble((visible(title), "bold"), visible(text))
    hanging(whole, indent) if indent else console.print(whole, soft_wrap=True)


def saved(path: Path, replaced: bool = False, then: str = "") -> None:
    """Say that a file is there, and whether one was there before."""
    before = " (replaced)" if replaced else ""
    say(f"saved {path}{before}{then}")


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """A bar with an estimate of the time left, on terminals only.

    Yields a function of the share that is done.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(escape(title), total=1.0)

        def report(share: float) -> None:
            stopping.check()
            bar.update(task, completed=share)

        yield report


@contextmanager
def rate(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for steps of systems, with their rate and the time left.

    Yields a function of (done, total). Until something is done it tells what the wait may be for.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(f"{escape(title)} ({WAITING})", total=1, rate="")
        began = time.monotonic()

        def report(done: int, total: int) -> None:
            stopping.check()
            speed = done / max(time.monotonic() - began, 1e-9)
            told = escape(title) if done else f"{escape(title)} ({WAITING})"
            rated = f"{speed:.2e} system-steps/s" if done else ""
            first = done > 0 and not bar.tasks[0].completed
            bar.update(
                task, description=told, completed=done, total=total, rate=rated, refresh=first
            )

        yield report


def keep_compiled() -> None:
    """Let JAX keep what it compiles on disk, so that the second run of a command does not compile
    again.

    The folder is $TOKENFLOCK_CACHE or a folder in the user's cache; set TOKENFLOCK_CACHE=off to
    keep nothing.
    """
    # equinox's error callbacks would keep solves out of the cache
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    place = cache_folder()
    if place is None:
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # a cache that cannot be written, or was cut short, costs time, not results
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")

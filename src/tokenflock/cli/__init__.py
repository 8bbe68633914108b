"""The command line: `tokenflock --help`."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence

from tokenflock.cli.waiting import later

CLOSED_PIPE = 141  # what a shell says of a program that SIGPIPE ends: whoever reads has enough


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Mistakes end in one clear line and exit code 2, failures in exit code 1,
    Ctrl-C in exit code 130.
    """
    later("xarray")
    if argv is None:
        gc.set_threshold(100_000, 20, 100)  # modules are loaded in nine tenths of the time
        if isinstance(sys.stdout, io.TextIOWrapper):  # LC_ALL=C has no letters beyond ASCII
            sys.stdout.reconfigure(errors="backslashreplace")
    from tokenflock.cli import stopping

    with stopping.obeying():
        try:
            code = _called(list(sys.argv[1:] if argv is None else argv))
        except BaseException as error:
            # libraries make other errors of an interrupt
            if not isinstance(error, KeyboardInterrupt) and not stopping.asked():
                raise
            print(f"error: {stopping.words()}", file=sys.stderr)
            code = stopping.code()
        if stopping.asked() and argv is None and code != 0:
            stopping.leave(stopping.code())  # libraries would wait for what they have begun
    sys.exit(code)


def _called(tokens: list[str]) -> int:
    """Run one command and give its exit code."""
    from cyclopts import CycloptsError

    from tokenflock.cli import stopping
    from tokenflock.cli.app import build, imported
    from tokenflock.cli.console import complain
    from tokenflock.cli.dropped import refuse_dropped
    from tokenflock.cli.language import exact, spoken
    from tokenflock.cli.parsing import refused
    from tokenflock.cli.values import joined
    from tokenflock.errors import OverflowWarning, SimulationError, UserError

    warnings.filterwarnings("ignore", category=OverflowWarning)  # commands say it themselves
    tokens = joined(tokens)
    app = None
    try:
        tokens = imported(tokens)
        app = build(tokens)
        tokens = exact(app, tokens)
        refuse_dropped(tokens)
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        print(end="", flush=True)
    except (UserError, CycloptsError) as error:
        known = isinstance(error, UserError)
        complain(spoken(str(error), app, tokens) if known else refused(error, app, tokens))
        code = 2
    except (SimulationError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            stopping.leave(CLOSED_PIPE)
        complain(spoken(str(error), app, tokens))
        code = 1
    except Exception as error:
        if os.environ.get("TOKENFLOCK_DEBUG") or stopping.asked():
            raise
        complain(_unexpected(error))
        code = 1
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> str:
    """What to say of an error that nobody foresaw."""
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "out of memory; ask for less at once: fewer tokens, dimensions, frames or repeats"
    first = " ".join(str(error).split())[:300]
    return (
        f"unexpected {type(error).__name__}: {first} (this is a bug; run again with"
        " TOKENFLOCK_DEBUG=1 for the traceback)"
    )

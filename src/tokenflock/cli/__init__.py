"""The command line: `tokenflock --help`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Mistakes end in one clear line and exit code 2, failures in exit code 1,
    Ctrl-C in exit code 130.
    """
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

    from tokenflock.cli.app import build
    from tokenflock.cli.console import complain
    from tokenflock.errors import SimulationError, UserError

    try:
        code = build(tokens)(
            tokens, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except (UserError, CycloptsError) as error:
        complain(str(error))
        code = 2
    except (SimulationError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            os._exit(0)  # whoever read our output has seen enough
        complain(str(error))
        code = 1
    except (MemoryError, RuntimeError) as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and not isinstance(error, MemoryError):
            raise
        complain(
            "out of memory; take fewer tokens or frames, or --dynamics streamed --base"
            " self-attention for very many tokens"
        )
        code = 1
    return code if isinstance(code, int) else 0

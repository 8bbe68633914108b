"""The command line: `tokenflock --help`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Mistakes end in one clear line and exit code 2, failures in exit code 1."""
    from cyclopts import CycloptsError

    from tokenflock.cli.app import build, imported
    from tokenflock.cli.console import complain
    from tokenflock.errors import SimulationError, UserError

    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        tokens = imported(tokens)
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
    except KeyboardInterrupt:
        complain("stopped")
        code = 130
    sys.exit(code if isinstance(code, int) else 0)

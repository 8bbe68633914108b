"""The command line: `tokenflock --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Mistakes end in one clear line and exit code 2, failures in exit code 1."""
    from cyclopts import CycloptsError

    from tokenflock.cli.app import build
    from tokenflock.cli.console import complain
    from tokenflock.errors import SimulationError, UserError

    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        code = build(tokens)(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except (UserError, CycloptsError) as error:
        complain(str(error))
        code = 2
    except (SimulationError, OSError) as error:
        complain(str(error))
        code = 1
    except KeyboardInterrupt:
        complain("stopped")
        code = 130
    sys.exit(code if isinstance(code, int) else 0)

"""`tokenflock spectrum`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tokenflock.cli import members
from tokenflock.cli.console import keep_compiled, saved, say
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

SHOWN = 20  # eigenvalues that are printed
ROLES = {
    "dynamics": ("dynamics", "self-attention"),
    "start": ("starts", "polygon"),
    "solver": ("solvers", None),
}


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command with the options of the members that the tokens name."""
    return members.command(_run, ROLES, tokens)


def _run(
    *,
    chosen: dict[str, members.Member],
    values: dict[str, Any],
    dynamics: Annotated[
        str, Parameter(help="law of motion (tokenflock list dynamics)")
    ] = "self-attention",
    start: Annotated[str, Parameter(help="the state at rest (tokenflock list starts)")] = "polygon",
    solver: Annotated[
        str | None, Parameter(help="of the map over --t, e.g. layer [default: no map]")
    ] = None,
    t: Annotated[float | None, Parameter(help="time of the map, e.g. the step of a layer")] = None,
    seed: Annotated[int, Parameter(help="seed of the start")] = 0,
    out: Annotated[Path, Parameter(help="the file to write")] = Path("spectrum.nc"),
) -> None:
    """Eigenvalues of a state at rest: which small changes grow, and how fast.

    Example: `tokenflock spectrum --beta 4 --start polygon --n 3 --out spectrum.nc`

    Example: `tokenflock spectrum --beta 4 --n 3 --solver layer --step 0.1 --t 0.1`
    """
    replaced = replaceable(out, NETCDF)
    if (t is None) != (solver is None):
        raise UserError("--solver and --t go together; write e.g. --solver layer --t 0.1")
    keep_compiled()
    built = {role: members.build(part, values) for role, part in chosen.items()}
    import tokenflock as flock

    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "the state is not at rest", RuntimeWarning)
        result = flock.spectrum(
            built["dynamics"], built["start"], t, built.get("solver"), seed=seed
        )
    flock.save(result, out)
    say("", title=result.attrs["title"].removeprefix("tokenflock: "))
    for each in caught:
        say(f"  warning: {each.message}")
    pairs = list(zip(result.rate.values.round(8) + 0, result.frequency.values))
    for rate, frequency in pairs[:SHOWN]:
        turning = f"   frequency {frequency:+.6f}" if abs(frequency) > 1e-9 else ""
        say(f"  rate {rate:+.8f}{turning}")
    if len(pairs) > SHOWN:
        say(f"  and {len(pairs) - SHOWN} more")
    saved(out, replaced)

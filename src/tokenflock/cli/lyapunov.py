"""`tokenflock lyapunov`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tokenflock.cli import members
from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.files import NETCDF, replaceable

ROLES = {
    "dynamics": ("dynamics", "self-attention"),
    "start": ("starts", "uniform"),
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
    start: Annotated[
        str, Parameter(help="where tokens begin (tokenflock list starts)")
    ] = "uniform",
    solver: Annotated[
        str | None, Parameter(help="of fixed step [default: rk4, with noise euler-maruyama]")
    ] = None,
    t: Annotated[float, Parameter(help="how long exponents are averaged")] = 100.0,
    settle: Annotated[
        float | None, Parameter(help="time before that [default: a quarter of it]")
    ] = None,
    exponents: Annotated[int | None, Parameter(help="how many [default: all]")] = None,
    seed: Annotated[int, Parameter(help="seed of the start and the noise")] = 0,
    out: Annotated[Path, Parameter(help="the file to write")] = Path("lyapunov.nc"),
) -> None:
    """Lyapunov exponents along one run: how fast nearby runs part or meet.

    Example: `tokenflock lyapunov --beta 4 --n 8 --d 3 --t 50 --exponents 4 --out lyapunov.nc`

    Example: `tokenflock lyapunov --beta 2 --n 4 --d 3 --solver layer --step 0.1 --t 20`
    """
    replaced = replaceable(out, NETCDF)
    keep_compiled()
    built = {role: members.build(part, values) for role, part in chosen.items()}
    import tokenflock as flock

    with progress("following") as report:
        result = flock.lyapunov(
            built["dynamics"],
            built["start"],
            t,
            built.get("solver"),
            settle=settle,
            exponents=exponents,
            seed=seed,
            progress=report,
        )
    flock.save(result, out)
    say("", title=result.attrs["title"].removeprefix("tokenflock: "))
    for number, exponent in enumerate(result.exponent.values, 1):
        say(f"  exponent {number:<4} {exponent:+.6f}")
    saved(out, replaced)

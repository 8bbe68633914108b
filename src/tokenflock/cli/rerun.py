"""`tokenflock rerun`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, saved, say
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

_WORDS = {"none": None, "true": True, "false": False}


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return rerun


def rerun(
    run: Annotated[Path, Parameter(help="a saved result of simulate or phase")],
    /,
    *,
    set: Annotated[
        list[str] | None,
        Parameter(
            help="a change, e.g. beta=9, seed=1, t=60 or solver.h=0.05; as often as needed",
            negative=(),
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="the file to write")] = Path("again.nc"),
) -> None:
    """Run a saved result again, from its own recipe, as it was or with changes.

    Changes are options (seed, t, frames, repeats, dtype, ...) or parameters of the law, the start,
    the solver and the observables, by name or dotted path.

    Example: `tokenflock rerun run.nc --set beta=9 --set seed=1 --out again.nc`
    """
    replaced = replaceable(out, NETCDF)
    changes = dict(_change(text) for text in set or [])
    keep_compiled()
    import tokenflock as flock
    from tokenflock.verbs.save_load import load

    result = flock.rerun(load(run), **changes)
    flock.save(result, out)
    say("", title=str(result.attrs["title"]).removeprefix("tokenflock: "))
    saved(out, replaced, f"; see it with: tokenflock plot {out}")


def _change(text: str) -> tuple[str, Any]:
    """`name=value` as a name and a number, a list of numbers, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UserError(f"--set takes name=value, got {text!r}; write e.g. --set beta=9")
    if value.lower() in _WORDS:
        return name, _WORDS[value.lower()]
    try:
        return name, int(value)
    except ValueError:
        pass
    try:
        values = numbers(value, name)
    except UserError:
        return name, value
    return name, values if "," in value or ":" in value else float(values[0])

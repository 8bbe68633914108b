"""`tokenflock rerun`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, saved, say
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError, require
from tokenflock.files import NETCDF, replaceable

if TYPE_CHECKING:
    import xarray as xr

_MADE = {  # what is made of a name and numbers, and how another command takes it
    name: f"--{name}" for name in ("dynamics", "start", "solver", "until", "observe")
}
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
    part: Annotated[
        list[str] | None,
        Parameter(help="only this part of an ensemble, e.g. beta=4", negative=()),
    ] = None,
    member: Annotated[
        list[str] | None,
        Parameter(
            help="one system of an ensemble, as a trajectory: its cell and its number, e.g."
            " --member beta=4 --member repeat=17",
            negative=(),
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="the file to write")] = Path("again.nc"),
) -> None:
    """Run a saved result again, from its own recipe, as it was, in part or with changes.

    Changes are options (seed, t, frames, repeats, dtype, ...) or parameters of the law, the start,
    the solver and the observables, by name or dotted path.

    Example: `tokenflock rerun run.nc --set beta=9 --set seed=1 --out again.nc`
    """
    replaced = replaceable(out, NETCDF)
    changes = _changes(set or [])
    where, system = _places("part", part), _places("member", member)
    if system and (changes or where):
        raise UserError("--member runs one system as it was; leave --set and --part out")
    keep_compiled()
    import tokenflock as flock
    from tokenflock.cli.opening import doubted
    from tokenflock.recipe import plain_recipe
    from tokenflock.verbs.save_load import load

    before = load(run)
    if system and "repeats" not in plain_recipe(before):
        raise UserError(
            f"--member runs one system of an ensemble, and {run} holds none; leave it"
            " out, or name the file of tokenflock phase"
        )
    with doubted(run, before, "run again"):
        result = (
            flock.member(before, **system)
            if system
            else flock.rerun(_selected(before, where), **changes)
        )
    flock.save(result, out)
    say("", title=str(result.attrs["title"]).removeprefix("tokenflock: "))
    saved(out, replaced, f"; see it with: tokenflock plot {quote(str(out))}")


def _changes(texts: Sequence[str]) -> dict[str, Any]:
    """What --set changes; a law, a start, a solver or observables are no numbers."""
    changes = _by_name("set", texts)
    for name in _MADE:
        if name in changes and isinstance(changes[name], str):
            raise UserError(
                f"--set {name} changes numbers, not the {name} itself, got {changes[name]!r}; run"
                f" it anew with: tokenflock simulate {_MADE[name]} {changes[name]}"
            )
    return changes


def _selected(result: xr.Dataset, where: dict[str, Any]) -> xr.Dataset:
    """The part of a result that has these values."""
    for name, value in where.items():
        axes = sorted({str(axis) for axis in result.dims} & {str(axis) for axis in result.coords})
        require(name in axes, "--part", f"of {', '.join(axes) or 'an axis'}", name)
        labels = result[name].values
        near = [k for k, label in enumerate(labels) if math.isclose(label, value, rel_tol=1e-9)]
        require(bool(near), f"--part {name}", f"one of {', '.join(map(str, labels[:9]))}", value)
        result = result.isel({name: near[0]})
    return result


def _places(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Values of axes, which are numbers."""
    pairs = _by_name(option, texts or [])
    for name, value in pairs.items():
        require(isinstance(value, (int, float)), f"--{option} {name}", "a number", repr(value))
    return pairs


def _by_name(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the value of each name, each of which may be given once."""
    values: dict[str, Any] = {}
    for text in texts:
        name, value = _pair(option, text)
        if name in values:
            raise UserError(f"--{option} {name} is given more than once; leave one out")
        values[name] = value
    return values


def _pair(option: str, text: str) -> tuple[str, Any]:
    """`name=value` as a name and a number, a list of numbers, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        wanted = f"write e.g. --{option} beta=9"
        raise UserError(f"--{option} takes name=value, got {text!r}; {wanted}")
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

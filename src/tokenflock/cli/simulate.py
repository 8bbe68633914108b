"""`tokenflock simulate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.catalogue import find
from tokenflock.cli import members
from tokenflock.cli.console import keep_compiled, progress, saved
from tokenflock.cli.options import WhenOptions
from tokenflock.cli.story import reach, tell, tell_overflow
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

LARGEST_BETA = 700.0  # e^710 is infinite
ROLES = {
    "dynamics": ("dynamics", "self-attention"),
    "start": ("starts", "uniform"),
    "solver": ("solvers", "adaptive"),
    "until": ("events", None),
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
    solver: Annotated[str | None, Parameter(help="how time advances [default: adaptive]")] = None,
    until: Annotated[
        str | None, Parameter(help="stop early: consensus, merged or stationary")
    ] = None,
    when: WhenOptions = WhenOptions(),
    observe: Annotated[
        str | None,
        Parameter(help="e.g. energy:convention=staircase,cluster-count [default: these]"),
    ] = None,
    seed: Annotated[int, Parameter(help="seed of the start and the noise")] = 0,
    dtype: Annotated[str, Parameter(help="float64 or float32")] = "float64",
    out: Annotated[Path, Parameter(help="the file to write")] = Path("run.nc"),
    coalesce: Annotated[
        float | None,
        Parameter(help="distance below which tokens become one, for exponentially long times"),
    ] = None,
) -> None:
    """Follow one system of tokens and save it as netCDF (variable x: time, particle, coord).

    The options below are those of the dynamics, the start and the solver that you name: add --help
    after them.

    Example: `tokenflock simulate --dynamics self-attention --beta 4 --n 32 --d 2 --t 30 --seed 0
    --out run.nc`

    Example: `tokenflock simulate --dynamics causal --start cap --angle 1 --solver layer --step 0.1
    --until consensus`

    Example: `tokenflock simulate --beta 9 --n 8 --d 3 --t 1e9 --until consensus --coalesce 1e-9`
    """
    replaced = replaceable(out, NETCDF)
    asked = {**when.asked(), "seed": seed, "dtype": dtype, "coalesce": coalesce}
    keep_compiled()
    built = {role: members.build(part, values) for role, part in chosen.items()}
    asked |= {role: built.get(role) for role in ("solver", "until")}
    if solver is None and not members.typed("solver", values):
        asked["solver"] = None  # the one that suits the law
    asked["observe"] = observables(observe, built["dynamics"])
    _follow(built["dynamics"], built["start"], out, asked)
    picture = out.with_suffix(".png")
    files = f"{quote(str(out))} --out {quote(str(picture))}"
    saved(out, replaced, f"; see it with: tokenflock plot {files}")


def _follow(dynamics: Any, start: Any, out: Path, asked: dict[str, Any]) -> None:
    """Run it, save it, and tell what happened."""
    import tokenflock as flock

    with progress("simulating") as report:
        run = flock.simulate(dynamics, start, **asked, progress=report)
    flock.save(run, out)
    tell(run)
    tell_overflow(run, asked["observe"])


def observables(text: str | None, dynamics: Any) -> list[Any]:
    """Observables from `name:key=value:key=value,name,...`.

    Energy (where the law has one) and cluster count by default.
    """
    if text is None:
        from tokenflock.spaces import Sphere

        pair = dynamics.interaction
        if pair is None or not isinstance(dynamics.space, Sphere):
            text = default_clusters(dynamics)
        else:
            energy = "energy:log=true" if _overflows(pair.beta) else "energy"
            text = f"{energy},cluster-count"
    wanted = []
    for part in text.split(","):
        if not part:
            raise UserError(
                f"--observe takes names and commas between them, got {text!r}; write e.g. --observe"
                " cluster-count,order-parameter"
            )
        name, *pairs = part.split(":")
        if any("=" not in pair for pair in pairs):
            raise UserError(
                f"--observe takes name:key=value, got {part!r}; write e.g."
                " energy:convention=staircase"
            )
        texts = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
        wanted.append(members.convert(find("observables", name), texts))
    return wanted


def _overflows(beta: Any) -> bool:
    """Whether e^beta is beyond the numbers, so that only the logarithm of an energy can be told."""
    return beta is not None and bool(np.max(beta) > LARGEST_BETA)


def default_clusters(dynamics: Any) -> str:
    """Clusters by cosine, or by distance for laws on R^d that are not about directions."""
    radius = reach(dynamics)
    return "cluster-count" if radius is None else f"cluster-count:radius={radius}"

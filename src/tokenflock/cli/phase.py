"""`tokenflock phase`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.cli import members, stopping
from tokenflock.cli.console import keep_compiled, rate, saved, say
from tokenflock.cli.options import EnsembleOptions, WhenOptions, drawable
from tokenflock.cli.simulate import observables
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

ROLES = {
    "dynamics": ("dynamics", "self-attention"),
    "start": ("starts", "uniform"),
    "solver": ("solvers", "layer"),
    "until": ("events", None),
}
PASSAGES = ("survival", "mean_time")


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command with the options of the members that the tokens name."""
    return members.command(_run, ROLES, tokens, skip=("beta",))


def _run(
    *,
    chosen: dict[str, members.Member],
    values: dict[str, Any],
    dynamics: Annotated[
        str, Parameter(help="law of motion, with a beta (tokenflock list dynamics)")
    ] = "self-attention",
    start: Annotated[
        str, Parameter(help="where tokens begin (tokenflock list starts)")
    ] = "uniform",
    solver: Annotated[str, Parameter(help="layer for the layer map, rk4 for the flow")] = "layer",
    beta: Annotated[
        str, Parameter(help="inverse temperatures, e.g. 0.1:9:45 (45 values) or 1,2,4")
    ] = "0.1:9:45",
    when: WhenOptions = WhenOptions(),
    many: EnsembleOptions = EnsembleOptions(),
    observe: Annotated[
        str, Parameter(help="e.g. pair-density:delta=1e-2,cluster-count,order-parameter")
    ] = "pair-density",
    out: Annotated[Path, Parameter(help="the file to write")] = Path("phase.nc"),
    plot: Annotated[Path | None, Parameter(help="a .png, .pdf or .svg file to draw it to")] = None,
    until: Annotated[
        str | None, Parameter(help="tell how long until: consensus, merged or stationary")
    ] = None,
) -> None:
    """A phase diagram: for each beta many systems, observed over time; means and standard errors as
    netCDF.

    The plot shows the transition that theory predicts for n tokens in the limit d to infinity: of
    the layer map or of the flow, as the solver says. After Ctrl-C the same command goes on where it
    stopped.

    Example: `tokenflock phase --n 32 --d 2 --beta 0.1:9:45 --t 30 --repeats 1024 --step 0.1 --out
    d2.nc --plot d2.png`

    Example: `tokenflock phase --n 16 --d 3 --beta 1,2,4 --solver rk4 --observe cluster-count --out
    clusters.nc`

    Example: `tokenflock phase --n 8 --d 3 --beta 1,2,4 --solver rk4 --t 400 --until consensus --out
    times.nc`
    """
    replaced = replaceable(out, NETCDF), drawable(plot)
    asked = {"beta": _betas(beta, chosen["dynamics"]), **when.asked(), **many.asked()}
    keep_compiled()
    built = {role: members.build(part, values) for role, part in chosen.items()}
    nothing = not observe and until is not None  # its time alone is wanted
    observed = [] if nothing else observables(observe, built["dynamics"])
    asked |= {"solver": built["solver"], "observe": observed, "until": built.get("until")}
    result = _kept(built["dynamics"], built["start"], out, asked)
    _tell(result)
    saved(out, replaced[0])
    if plot is not None:
        from tokenflock import plots

        plots.save_figure(plots.phase_diagram(result), plot)
        saved(plot, replaced[1])


def _betas(text: str, law: members.Member) -> np.ndarray:
    """The values of --beta, each once, for a law that has such a number."""
    if not law.has("beta"):
        raise UserError(
            f"phase varies beta, which --dynamics {law.entry.slug} does not have; take one that"
            " has it, e.g. --dynamics self-attention, or vary another number with: tokenflock sweep"
        )
    values = numbers(text, "--beta")
    if len(np.unique(values)) < len(values):
        raise UserError(
            f"--beta must name each value once, got {text!r}; for more systems of each"
            " take more --repeats"
        )
    return values


def _kept(dynamics: Any, start: Any, out: Path, asked: dict[str, Any]) -> Any:
    """The phase diagram, saved; what is done is kept beside it while it runs."""
    import tokenflock as flock

    part = out.with_name(out.name + ".part")
    stopping.goes_on(f"what is done is in {part}, and the same command goes on from there")
    with rate("running") as report:
        result = flock.phase_diagram(dynamics, start, **asked, out=part, progress=report)
    flock.save(result, out)  # where there is no room, the same command has it at once with more
    flock.sweeps.Store(part).remove()
    return result


def _tell(result) -> None:
    """How it ran, and the means at the last time for a few betas."""
    title = result.attrs["title"].removeprefix("tokenflock: ")
    say(f", {result.attrs['convention']}", title=title)
    say(f"  engine    {result.attrs['engine']} ({result.attrs['seconds']:.3g} s)")
    last = result.isel(time=-1)
    for name in result.data_vars:
        if f"{name}_error" not in result or last[name].ndim != 1 or name in PASSAGES:
            continue
        say(f"  {name} at t = {float(last.time):g}")
        every = max(1, result.sizes["beta"] // 8)
        for value, mean, error in list(
            zip(result.beta.values, last[name].values, last[f"{name}_error"].values)
        )[::every]:
            say(
                f"    beta = {value:<8.4g} {mean:.4f}"
                + (f" ± {error:.4f}" if error == error else "")
            )
    if "survival" in result:
        _tell_passages(result)


def _tell_passages(result) -> None:
    """Print median and restricted mean times of first passage for a few betas."""
    systems, end = result.sizes["repeat"], float(result.time[-1])
    say(f"  time until {result.survival.attrs['event']} (restricted mean: later counts as {end:g})")
    every = max(1, result.sizes["beta"] // 8)
    cells = result[["median_time", "mean_time", "mean_time_error", "censored"]]
    rows = cells.isel(beta=slice(None, None, every)).stack(row=list(cells.median_time.dims))
    for row in [rows.isel(row=k) for k in range(rows.sizes["row"])]:
        where = f"beta = {float(row.beta):<8.4g}"
        where += f" clusters = {int(row.clusters)}" if "clusters" in row.coords else ""
        median, error = float(row.median_time), float(row.mean_time_error)
        text = f"median {median:.6g}" if median == median else f"median more than {end:g}"
        text += f", restricted mean {float(row.mean_time):.6g}"
        text += f" ± {error:.2g}" if error == error else ""
        say(f"    {where} {text}, {float(row.censored) / systems:.3g} censored")

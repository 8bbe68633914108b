"""`tokenflock branch`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.cli import members
from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.cli.options import drawable
from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable

ROLES = {"dynamics": ("dynamics", "unnormalised")}


@Parameter(name="*")
@dataclass(frozen=True)
class BranchOptions:
    """With which ripple a branch begins, on which grid it lies, and how it is followed."""

    degree: Annotated[int, Parameter(help="degree of the ripple with which it begins")] = 1
    d: Annotated[int, Parameter(help="dimension: 2 for the circle, 3 for the sphere, ...")] = 2
    points: Annotated[int | None, Parameter(help="nodes of the grid [default: 256 or 96]")] = None
    step: Annotated[float, Parameter(help="length of a step along the branch")] = 0.05
    most: Annotated[int, Parameter(help="points of the branch at most")] = 400

    def asked(self) -> dict[str, Any]:
        """The same for `meanfield.branch`."""
        given = asdict(self)
        return {"start": given.pop("degree"), **given}


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command with the options of the members that the tokens name."""
    return members.command(_run, ROLES, tokens)


def _run(
    *,
    chosen: dict[str, members.Member],
    values: dict[str, Any],
    dynamics: Annotated[
        str, Parameter(help="law of motion, to which noise is added (tokenflock list dynamics)")
    ] = "unnormalised",
    parameter: Annotated[str, Parameter(help="what changes: kappa, beta, ...")] = "kappa",
    kappa: Annotated[
        float | None, Parameter(help="inverse noise, where another number changes [default: 1]")
    ] = None,
    within: Annotated[
        str | None, Parameter(help="range of the parameter, e.g. 0.3,0.6 [default: about kappa_c]")
    ] = None,
    how: BranchOptions = BranchOptions(),
    out: Annotated[Path, Parameter(help="the file to write")] = Path("branch.nc"),
    plot: Annotated[Path | None, Parameter(help="a .png, .pdf or .svg file to draw it to")] = None,
) -> None:
    """Follow the stationary measures of a law with noise from where the uniform one gives way.

    Folds are located, stable and unstable states told apart by eigenvalues.

    Example: `tokenflock branch --beta 4 --d 2 --out branch.nc --plot branch.png`

    Example: `tokenflock branch --dynamics self-attention --beta 4 --d 3 --within 3,20 --plot
    sphere.png`
    """
    replaced = replaceable(out, NETCDF), drawable(plot)
    keep_compiled()
    if kappa is not None and parameter == "kappa":
        raise UserError(
            f"--kappa {kappa:g} and --parameter kappa contradict each other: kappa is what changes;"
            " give its range with --within, or another --parameter"
        )
    law = members.build(chosen["dynamics"], values)
    if how.degree < 1:
        raise UserError(f"--degree must be 1 or more, got {how.degree}; write e.g. --degree 1")
    if not law.isotropic:
        raise UserError(
            f"branch begins at the uniform measure, from which --dynamics {dynamics} has no way out"
            " that a degree names, since it tells directions apart; in Python give"
            " meanfield.branch(start=...) a density"
        )
    from tokenflock.dynamics import Noisy
    from tokenflock.meanfield import branch
    from tokenflock.verbs.save_load import save

    noisy = law if law.noisy else Noisy(law, kappa=1.0 if kappa is None else kappa)
    ends = _about(law, parameter, how) if within is None else _range(within)
    with progress("following") as report:
        states = branch(noisy, parameter, within=ends, progress=report, **how.asked())
    save(states, out)
    _tell(states, parameter)
    saved(out, replaced[0])
    if plot is not None:
        from tokenflock import plots

        plots.save_figure(plots.bifurcation(states), plot)
        saved(plot, replaced[1])


def _range(within: str) -> tuple[float, float]:
    """The two numbers of --within."""
    ends = numbers(within, "--within")
    if len(ends) != 2 or not (np.isfinite(ends).all() and ends[0] < ends[1]):
        raise UserError(
            f"--within takes two numbers, the lower one first, got {within!r}; write e.g. --within"
            " 0.3,0.6"
        )
    return float(ends[0]), float(ends[1])


def _about(law: Any, parameter: str, how: BranchOptions) -> tuple[float, float]:
    """A range about the kappa at which the uniform measure gives way to a ripple of the degree:
    where k (k + d - 2) / kappa is its rate without noise.
    """
    from tokenflock.dynamics import SelfAttention, Unnormalised
    from tokenflock.theory import growth_rate

    k, d = how.degree, how.d
    model = {Unnormalised: "USA", SelfAttention: "SA"}.get(type(law))
    if model is None or parameter != "kappa" or getattr(law, "shift", 0):
        raise UserError("--within is needed for this law; write e.g. --within 0.5,5")
    rate = (-1 if law.repulsive else 1) * float(growth_rate(k, law.beta, d, model))
    if not 0 < rate < np.inf:
        raise UserError(
            f"the uniform measure never gives way to a ripple of --degree {k}: without noise it"
            f" grows at the rate {rate:.3g}; take another --degree, another --beta, or an"
            " attractive law"
        )
    critical = k * (k + d - 2) / rate
    return 0.8 * critical, 1.4 * critical


def _tell(states, parameter: str) -> None:
    """Where it begins, turns and ends."""
    say("", title=states.attrs["title"].removeprefix("tokenflock: "))
    if "leaves" in states:
        say(f"  leaves the uniform measure at {parameter} = {float(states.leaves):.10g}")
    for value, order in zip(states.fold.values, states.fold_order_parameter.values):
        say(f"  fold at {parameter} = {value:.10g}, order parameter {order:.6f}")
    for value, order in zip(states.transition.values, states.transition_order_parameter.values):
        say(f"  equal free energies at {parameter} = {value:.10g}, order parameter {order:.6f}")
    last = states.isel(point=-1)
    state = "stable" if int(last.stable) else "unstable"
    say(
        f"  {states.sizes['point']} states up to {parameter} = {float(last[parameter]):.6g}, order"
        f" parameter {float(last.order_parameter):.6f}, {state}"
    )
    if "stopped" in states.attrs:
        say(f"  stopped: {re.sub(r'(?<=raise )(?=points|most)', '--', states.attrs['stopped'])}")

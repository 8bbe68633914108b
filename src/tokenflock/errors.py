"""Errors that name the argument, what was wanted, what came, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in the input, told in one line that contains the remedy."""


class SimulationError(RuntimeError):
    """A run that could not be finished honestly: it diverged, stalled or lost its numbers."""


class OverflowWarning(RuntimeWarning):
    """Part of a result left the numbers; the rest of it is good."""


def overflowed(what: str, dtype: str) -> str:
    """What to say of a run that left the numbers."""
    return (
        f"{what} is not finite in {dtype}: it overflowed. Take dtype='float64', a smaller beta or"
        " step, Energy(log=True), or the clock 'peak' for unnormalised attention"
    )


def require(condition: bool, argument: str, wanted: str, got: object, instead: str = "") -> None:
    """Raise `UserError` unless `condition`: "`argument` must be `wanted`, got `got`; write
    `instead`".
    """
    if not condition:
        raise UserError(
            f"{argument} must be {wanted}, got {got}" + (f"; {instead}" if instead else "")
        )


def require_known(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UserError` for an option that `what` does not have, with the nearest that it has."""
    known = list(known)
    for name in options:
        if name not in known:
            from difflib import get_close_matches  # seldom needed

            near = get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise UserError(f"{what} has no option {name!r}; {remedy}")

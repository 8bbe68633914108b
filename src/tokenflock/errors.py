"""Errors that name the argument, what was wanted, what came, and what to write instead."""

from __future__ import annotations


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

"""Adaptive Runge-Kutta, from diffrax."""

from __future__ import annotations

import enum
from typing import ClassVar

from tokenflock.errors import require
from tokenflock.solvers.solver import Solver


class Method(enum.Enum):
    """Embedded Runge-Kutta pairs of diffrax."""

    DOPRI8 = "Dopri8"
    TSIT5 = "Tsit5"
    BOSH3 = "Bosh3"

    @property
    def order(self) -> int:
        """The order p of the pair: an error of h^(p+1) in a step h."""
        return {"Dopri8": 8, "Tsit5": 5, "Bosh3": 3}[self.value]


class Adaptive(Solver):
    """Adaptive Runge-Kutta for the flow (diffrax), with an error tolerance, dense output and
    events.

    The default tolerance is 1e-9 in float64 and 1e-5 in float32. One accurate trajectory; for many
    systems at once use a solver of fixed step.

    >>> Adaptive(rtol=1e-6).method.order
    8
    """

    order: ClassVar[int] = 8
    cites: ClassVar[tuple[str, ...]] = ("kidger2021diffrax", "dormand1980")

    rtol: float | None = None
    "relative tolerance of a step"
    atol: float | None = None
    "absolute tolerance of a step; a hundredth of rtol unless given"
    method: Method = Method.DOPRI8
    "dopri8, tsit5 or bosh3"
    max_steps: int = 1_000_000
    "give up after so many steps"

    def __check_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            require(value is None or value > 0, name, "positive", value, "write e.g. rtol=1e-9")
        fits = 1 <= self.max_steps < 2**31
        require(fits, "max_steps", "from 1 to below 2^31", self.max_steps)

    def tolerances(self, dtype: str) -> tuple[float, float]:
        """(rtol, atol) for a precision."""
        rtol = self.rtol if self.rtol is not None else 1e-9 if dtype == "float64" else 1e-5
        return rtol, self.atol if self.atol is not None else rtol / 100

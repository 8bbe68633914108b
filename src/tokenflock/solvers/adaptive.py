"""Adaptive Runge-Kutta, from diffrax."""

from __future__ import annotations

import enum
from typing import ClassVar

from tokenflock.errors import require
from tokenflock.solvers.solver import Solver


class Method(enum.Enum):
    """Embedded Runge-Kutta pairs of diffrax, and a stabilised method for stiff laws."""

    DOPRI8 = "Dopri8"
    TSIT5 = "Tsit5"
    BOSH3 = "Bosh3"
    CHEBYSHEV = "Chebyshev"

    @property
    def order(self) -> int:
        """The order p of the pair: an error of h^(p+1) in a step h."""
        return {"Dopri8": 8, "Tsit5": 5, "Bosh3": 3, "Chebyshev": 2}[self.value]


class Adaptive(Solver):
    """Adaptive Runge-Kutta for the flow (diffrax), with an error tolerance, dense output and
    events.

    The default tolerance is 1e-9 in float64 and 1e-5 in float32. In ensembles each system takes
    steps of its own, in float64. The method `chebyshev` is stabilised: its steps take as many short
    stages as the fastest decay needs (RKC of Sommeijer, Shampine and Verwer, 1997), for
    laws that pull clusters together at rates like e^beta. Where there is noise, it enters every
    `noise_step`, and the drift is followed in between.

    >>> Adaptive(rtol=1e-6).method.order
    8
    """

    order: ClassVar[int] = 8
    takes_noise: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("kidger2021diffrax", "dormand1980")

    rtol: float | None = None
    "relative tolerance of a step"
    atol: float | None = None
    "absolute tolerance of a step; a hundredth of rtol unless given"
    method: Method = Method.DOPRI8
    "dopri8, tsit5, bosh3 or, for stiff laws, chebyshev"
    max_steps: int = 1_000_000
    "give up after so many steps, or stages of chebyshev"
    noise_step: float = 0.01
    "time between increments of noise, for laws that have some"

    def __check_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            require(value is None or value > 0, name, "positive", value, "write e.g. rtol=1e-9")
        good = self.noise_step > 0
        require(good, "noise_step", "positive", self.noise_step, "write e.g. noise_step=0.01")
        fits = 1 <= self.max_steps < 2**31
        require(fits, "max_steps", "from 1 to below 2^31", self.max_steps)

    def tolerances(self, dtype: str) -> tuple[float, float]:
        """(rtol, atol) for a precision."""
        rtol = self.rtol if self.rtol is not None else 1e-9 if dtype == "float64" else 1e-5
        return rtol, self.atol if self.atol is not None else rtol / 100

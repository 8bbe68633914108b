"""A measure as plots read it: a density at nodes, over time where there is time, and the words for
both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm, Normalize

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError, finite_numbers, require
from tokenflock.frozen import choice
from tokenflock.plots._story import nearest, plain_title, time_label
from tokenflock.plots._titles import law_title, matrix_title
from tokenflock.verbs.measure import dynamics_of

LABEL = r"density $\rho$"
UNIFORM = 1 / (2 * np.pi)  # the density of the uniform measure on the circle
# in units of pi
ANGLES = {0.0: "0", 0.5: r"$\pi/2$", 1.0: r"$\pi$", 1.5: r"$3\pi/2$", 2.0: r"$2\pi$"}
NAMES = {"theta": r"angle $\theta$", "latitude": "angle to the axis"}
_STEEP = 10.0  # times the uniform density: a peak beyond it asks for logarithmic colours
_DECADES = 2.0  # that they show
_SHAPES = {("theta",): "theta", ("latitude",): "latitude", ("latitude", "longitude"): "latitude"}


@dataclass(frozen=True)
class Spread:
    """Frames of a density on the circle (theta), on latitudes, or on S^2 (latitude, longitude)."""

    result: xr.Dataset
    # (frames, nodes) or (frames, latitudes, longitudes), with respect to arc length or area
    density: np.ndarray
    kind: str  # theta or latitude: the name of the first angle
    angle: np.ndarray
    timed: bool  # whether the result has an axis of time

    axis = "time"

    @property
    def times(self) -> np.ndarray:
        """The times of the frames; one zero where there is no time."""
        return self.result["time"].values if self.timed else np.zeros(1)

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self.density)

    @property
    def d(self) -> int:
        """Dimension of the space around the sphere."""
        return (
            2
            if self.kind == "theta"
            else 3
            if self.density.ndim == 3
            else int(self.recipe.get("d", 3))
        )

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """How the result was made; empty where nobody knows."""
        try:
            return recipes.loads(self.result.attrs.get("recipe", "{}"))
        except UserError:
            return {}

    @cached_property
    def law(self) -> Dynamics | None:
        """The law of motion, where there is one that can be read."""
        return dynamics_of(self.result)

    @property
    def heading(self) -> str:
        """What is shown: 'Self-attention, beta = 4', or the density of least energy of a matrix."""
        if self.law is not None:
            return law_title(self.law)
        if self.recipe.get("verb") == "optimal_density":
            from tokenflock.meanfield.potential import Goal  # slow to import

            goal = choice(Goal, self.recipe.get("goal"), "goal")
            extreme = "least" if goal.sign > 0 else "greatest"
            return f"Density of {extreme} energy, {matrix_title(np.asarray(self.recipe['D']))}"
        return plain_title(self.result, "Density")

    @property
    def label(self) -> str:
        """What the axis of frames is called on a plot."""
        return time_label()

    def frame(self, at: float | None) -> int:
        """The frame nearest to a time; the last one unless given."""
        return nearest(self.times, at)

    def moment(self, frame: int, decimals: int | None = None) -> str:
        """When it is, 't = 3.2'; nothing for a density that has no time."""
        if not self.timed:
            return ""
        return (
            f"$t$ = {self.times[frame]:.4g}"
            if decimals is None
            else f"$t$ = {self.times[frame]:.{decimals}f}"
        )

    def title(self, frame: int) -> str:
        """What is shown, and when, in one or two lines."""
        return "\n".join(filter(None, [self.heading, self.moment(frame)]))

    @property
    def decimals(self) -> int:
        """How many decimals tell neighbouring frames apart, so that a clock keeps its width."""
        return next(
            (
                count
                for count in range(3)
                if np.allclose(self.times, np.round(self.times, count), rtol=0, atol=1e-6)
            ),
            3,
        )

    def ring(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """(angle, density) of one frame on the circle, closed: the first node comes again at its
        end.
        """
        return np.append(self.angle, self.angle[0] + 2 * np.pi), np.append(
            self.density[frame], self.density[frame][0]
        )


def colour_norm(run: Spread, log: bool | None = None) -> Normalize:
    """Colours of a density over time: logarithmic unless said otherwise where its peak is steep,
    over two decades.
    """
    peak = float(run.density.max())
    steep = (
        peak * float(run.result["weight"].sum()) > _STEEP
        if log is None and "weight" in run.result
        else bool(log)
    )
    return LogNorm(peak / 10**_DECADES, peak, clip=True) if steep else Normalize(0, peak, clip=True)


def is_spread(result: xr.Dataset) -> bool:
    """Whether a result is of a density, not of tokens."""
    return "density" in result and "x" not in result


def spread(result: xr.Dataset, **wanted: str) -> Spread:
    """Read a result with a density, or say what is wrong with it.

    wanted: for the one kind of density that a plot draws, a name of that kind and what else to use,
    as in `theta="use density_surface"`.
    """
    variables = (
        sorted(map(str, result.data_vars))
        if isinstance(result, xr.Dataset)
        else type(result).__name__
    )
    fits = isinstance(result, xr.Dataset) and "density" in result
    require(
        fits,
        "result",
        "a Dataset with a density, as from meanfield.evolve or optimal_density",
        variables,
    )
    density = result["density"]
    dims = tuple(str(name) for name in density.dims if name != "time")
    require(
        dims in _SHAPES, "density", "over theta, latitude, or latitude and longitude", density.dims
    )
    require(density.size > 0, "density", "of axes that are not empty", dict(density.sizes))
    kind, timed = _SHAPES[dims], "time" in density.dims
    for name in ("density", kind, "time") if timed else ("density", kind):
        finite_numbers(name, result[name].values)
    for name, instead in wanted.items():
        if kind != name:
            raise UserError(
                f"this plot is for a density over {name}, got one over {' and '.join(dims)};"
                f" {instead}"
            )
    values = density.transpose("time", *dims).values if timed else density.values[None]
    return Spread(result, values, kind, result[kind].values, timed)

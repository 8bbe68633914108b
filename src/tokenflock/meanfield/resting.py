"""`stationary`: a measure at rest, by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.equilibria import Equilibrium, equilibrium, newton
from tokenflock.meanfield.evolution import blur
from tokenflock.meanfield.functionals import functionals
from tokenflock.meanfield.grids import Numbers
from tokenflock.precision import cast, precision

RATES = 8  # eigenvalues that are kept
STILL = 1e-9  # a rate below which a change does not grow


def stationary(
    dynamics: Dynamics,
    start: Density | xr.Dataset,
    *,
    d: int = 2,
    points: int | None = None,
) -> xr.Dataset:
    """A stationary measure of a law with noise, near a guess, and whether it is stable.

        (1/kappa) Lap mu = div( X[mu] mu )

    on the circle, symmetric about the angle 0, or on S^(d-1), symmetric about an axis: Newton's
    method on the modes of the density, which finds unstable states too. Stable means that no small
    change grows: on the circle any change (but the rotation of the measure, if the law is
    isotropic), on S^(d-1) those that keep the symmetry.

    Args:
      dynamics: a law with noise, e.g. `Noisy(Unnormalised(beta=4.0), kappa=0.5)`.
      start: the guess: a density, or a measure of `evolve` or `stationary`.
      d: dimension of the space around the sphere.
      points: nodes of the grid, as in `evolve`.

    Returns a Dataset with `density` (theta or latitude), `weight`, `order_parameter`, `rate` (the
    largest eigenvalues of small changes), `stable` (1 or 0), and `free_energy` for gradient flows.

    Source: arXiv 2412.14813; arXiv 2512.01868.

    >>> from tokenflock.dynamics import Noisy, Unnormalised
    >>> from tokenflock.meanfield import VonMises
    >>> law = Noisy(Unnormalised(beta=1.0), kappa=3.0)
    >>> state = stationary(law, VonMises(2.0), points=64)
    >>> float(state.order_parameter) > 0.5, int(state.stable)
    (True, 1)
    """
    with precision("float64"):
        problem = equilibrium(dynamics, None, d, points)
        a = newton(problem, problem.guess(start), 0.0)
        variables = _variables(problem, a)
    recipe = {
        "verb": "stationary",
        "dynamics": dynamics,
        "start": start if isinstance(start, Density) else None,
        "d": d,
        "points": problem.space.points,
        "versions": recipes.versions("jax", "numpy"),
    }
    space = problem.space
    coords = {space.name: (space.name, space.coordinate, {"units": "rad"})}
    attrs = {"title": f"tokenflock: {dynamics!r}", "recipe": recipes.dumps(recipe)}
    smear = float(blur(problem.full(a), space.degree))
    if smear > 1e-6:
        attrs["warning"] = f"the density is hardly resolved (blur {smear:.1g}); raise points"
    return xr.Dataset(variables, coords, attrs)


def _variables(problem: Equilibrium, a: Numbers) -> dict[str, Any]:
    """What is told of a state at rest."""
    space = problem.space
    rates = problem.rates(a, 0.0)[:RATES]
    energy = free_energy(problem, a, 0.0)
    variables: dict[str, Any] = {
        "density": ((space.name,), relative(problem, a) / space.surface, {"long_name": "density"}),
        "weight": ((space.name,), space.weights * space.surface),
        "order_parameter": ((), problem.order_parameter(a), {"long_name": "order parameter"}),
        "rate": (("mode",), rates, {"long_name": "growth rate of small changes"}),
        "stable": ((), np.int8(rates[0] < STILL), {"long_name": "whether it is stable"}),
    }
    if energy is not None:
        variables["free_energy"] = ((), energy, {"long_name": "free energy"})
    return variables


def relative(problem: Equilibrium, a: Numbers) -> Numbers:
    """The density at the nodes, relative to the uniform one."""
    return problem.space.tables[0] @ problem.full(a)


def free_energy(problem: Equilibrium, a: Numbers, p: float) -> float | None:
    """The free energy, which the flow climbs, of an even measure; None where the law has none."""
    plain = problem.at(p)
    law = cast(plain, "float64")
    energies = functionals(law, plain, problem.space, problem.table, problem.full(a)[None])
    return float(energies["free_energy"][0]) if "free_energy" in energies else None

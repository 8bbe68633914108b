"""Stationary measures as zeros of the continuity equation, and the curve that they form while a
number of the law changes.

A measure that is even about its axis is f = 1 + sum_k a_k phi_k. Its modes a and the parameter p
are one vector z = (a, p / scale); stationary ones solve F(z) = da/dt = 0. Newton's method solves F
for given p, and pseudo-arclength continuation (Keller 1977) F together with <tangent, z - z_0> =
step, which goes through folds. The eigenvalues of dF/da tell whether a state is stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import SimulationError, UserError, require
from tokenflock.meanfield.continuity import Tables, check, slope, tables
from tokenflock.meanfield.density import Density
from tokenflock.meanfield.grids import Circle, Grid, Numbers, grid
from tokenflock.precision import cast
from tokenflock.shapes import Array

NEWTON = 30  # iterations at most
SMALL = 1e-11  # of the last Newton step, and of the residual relative to the largest rate
UNIFORM = 1e-7  # size of the modes below which a measure is the uniform one


@dataclass(frozen=True)
class Equilibrium:
    """The equation F(a, p) = 0 of a law on a grid, where p is the number of the law at `path`."""

    dynamics: Dynamics
    space: Grid
    path: tuple[str, ...]
    table: Tables
    law: Dynamics  # the same as JAX values

    @property
    def even(self) -> np.ndarray:
        """The modes that are even about the axis, without the first, which is the mass."""
        count = self.space.points // 3 + 1 if isinstance(self.space, Circle) else len(self.modes)
        return np.arange(1, count)

    @property
    def odd(self) -> np.ndarray:
        """The others: there are some on the circle."""
        return np.arange(len(self.even) + 1, len(self.modes))

    @property
    def modes(self) -> np.ndarray:
        """The degree of every mode."""
        return self.space.degree

    @property
    def value(self) -> float:
        """The parameter as the law has it."""
        return float(_at(self.dynamics, self.path)) if self.path else 0.0

    def at(self, p: float) -> Dynamics:
        """The law with the parameter p."""
        return changed(self.dynamics, self.path, float(p))

    def mode(self, degree: int) -> int:
        """Where the even mode of a degree is among the even ones."""
        return int(np.flatnonzero(self.modes[self.even] == degree)[0])

    def order_parameter(self, a: Numbers) -> float:
        """|int x dmu|: the first mode is sqrt(d) times the cosine of the angle to the axis."""
        return abs(float(a[0])) / np.sqrt(self.space.d)

    def guess(self, start: Any) -> Numbers:
        """The even modes of a density, or of the last frame of a measure."""
        if isinstance(start, xr.Dataset):
            require("density" in start, "start", "a measure with `density`", list(start.data_vars))
            last = start.isel(time=-1) if "time" in start.dims else start
            f = last.density.values * self.space.surface
            fits = f.shape == (self.space.points,)
            require(fits, "start", f"a density at {self.space.points} points", f"{f.shape}")
        else:
            require(isinstance(start, Density), "start", "a density such as VonMises(2.0)", start)
            f = start.on(self.space)
        whole = self.space.coefficients(f)
        aside = np.abs(whole[self.odd]).max(initial=0.0)
        require(aside < 1e-6, "start", "symmetric about the angle 0", f"odd modes {aside:.2g}")
        return whole[self.even]

    def full(self, a: Numbers) -> Numbers:
        """All modes of an even measure of mass one."""
        whole = np.zeros(len(self.modes))
        whole[0] = 1
        whole[self.even] = a
        return whole

    def residual(self, a: Numbers, p: float) -> tuple[Numbers, Numbers]:
        """(F, its derivative with respect to (a, p)) on the even modes."""
        z = jnp.asarray(np.append(a, p))
        F, D = _residual(self.law, self.table, self.path, self.even, len(self.modes), z)
        return np.asarray(F), np.asarray(D)

    def rates(self, a: Numbers, p: float) -> Numbers:
        """Real parts of the eigenvalues of small changes of the measure, largest first.

        On the circle those that are not even count too, without the rotation of the measure as a
        whole, along which nothing changes.
        """
        z = jnp.asarray(np.append(a, p))
        J = np.asarray(_linear(self.law, self.table, self.path, self.even, len(self.modes), z))
        values = np.linalg.eigvals(J[np.ix_(self.even, self.even)])
        if len(self.odd):
            others = np.linalg.eigvals(J[np.ix_(self.odd, self.odd)])
            if self.dynamics.isotropic and np.abs(a).max() > UNIFORM:
                others = np.delete(others, np.abs(others).argmin())
            values = np.concatenate([values, others])
        return np.sort(np.real(values))[::-1]


def equilibrium(
    dynamics: Dynamics,
    parameter: str | None,
    d: int,
    points: int | None,
    largest: float | None = None,
) -> Equilibrium:
    """The equation of a law, good up to the `largest` parameter. Call inside
    `precision('float64')`.
    """
    require(
        isinstance(dynamics, Dynamics) and dynamics.noisy,
        "dynamics",
        "a law with noise such as Noisy(Unnormalised(beta=4.0))",
        repr(dynamics),
    )
    space = grid(d, points)
    check(dynamics, space)
    path = () if parameter is None else number(dynamics, parameter)
    widest = dynamics if largest is None else changed(dynamics, path, largest)
    return Equilibrium(dynamics, space, path, tables(widest, space), cast(dynamics, "float64"))


def number(dynamics: Dynamics, name: str) -> tuple[str, ...]:
    """Where a number of a law lives: in the law itself, or in the one that it is built around."""
    for depth, law in enumerate(dynamics.layers_around):
        value = vars(law).get(name)
        if isinstance(value, float):
            return ("base",) * depth + (name,)
    raise UserError(
        f"parameter must be a number of the law, got {name!r}; write e.g. parameter='kappa' or"
        " parameter='beta'"
    )


def changed(dynamics: Dynamics, path: tuple[str, ...], value: Any) -> Dynamics:
    """The law with another number at a path; itself where there is no path."""
    return eqx.tree_at(partial(_at, path=path), dynamics, value) if path else dynamics


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = getattr(tree, name)
    return tree


def _right(law: Dynamics, table: Tables, path: tuple[str, ...], a: Array, p: Array) -> Array:
    """da/dt of all modes, with the number p in the law."""
    return slope(changed(law, path, p), jnp.zeros(()), table, a)


@eqx.filter_jit
def _residual(
    law: Dynamics, table: Tables, path: tuple[str, ...], even: np.ndarray, count: int, z: Array
) -> tuple[Array, Array]:
    def F(z: Array) -> Array:
        a = jnp.zeros(count).at[0].set(1.0).at[even].set(z[:-1])
        return _right(law, table, path, a, z[-1])[even]

    return F(z), jax.jacfwd(F)(z)


@eqx.filter_jit
def _linear(
    law: Dynamics, table: Tables, path: tuple[str, ...], even: np.ndarray, count: int, z: Array
) -> Array:
    a = jnp.zeros(count).at[0].set(1.0).at[even].set(z[:-1])
    return jax.jacfwd(lambda a: _right(law, table, path, a, z[-1]))(a)


def newton(problem: Equilibrium, a: Numbers, p: float) -> Numbers:
    """The modes of the stationary measure near a guess."""
    for _ in range(NEWTON):
        F, D = problem.residual(a, p)
        step = np.linalg.solve(D[:, :-1], F)
        a = a - step
        if not np.isfinite(a).all():
            break
        if np.abs(step).max() < SMALL * max(1.0, np.abs(a).max()):
            return a
    raise SimulationError(
        "Newton's method finds no stationary measure near the guess; start nearer (e.g. from the"
        " end of `evolve`), or raise points"
    )


@dataclass(frozen=True)
class Point:
    """A point of a branch: z = (modes, parameter / scale) and the unit tangent there."""

    z: Numbers
    tangent: Numbers


@dataclass(frozen=True)
class Curve:
    """The curve F = 0, with the parameter in units of `scale`."""

    problem: Equilibrium
    scale: float

    def derivative(self, z: Numbers) -> tuple[Numbers, Numbers]:
        """(F, dF/dz)."""
        F, D = self.problem.residual(z[:-1], z[-1] * self.scale)
        return F, D * np.append(np.ones(len(z) - 1), self.scale)

    def tangent(self, z: Numbers, along: Numbers) -> Numbers:
        """The unit tangent that points along a direction."""
        _, D = self.derivative(z)
        border = np.vstack([D, along])
        direction = np.linalg.solve(border, np.append(np.zeros(len(z) - 1), 1.0))
        return direction / np.linalg.norm(direction)

    def onto(self, start: Point, step: float, iterations: int = NEWTON) -> Point | None:
        """The point of the curve a step away from another, or None where Newton finds none."""
        z = start.z + step * start.tangent
        for _ in range(iterations):
            F, D = self.derivative(z)
            short = step - start.tangent @ (z - start.z)
            change = np.linalg.solve(np.vstack([D, start.tangent]), np.append(-F, short))
            z = z + change
            if not np.isfinite(z).all() or np.abs(change).max() > 10:
                return None
            if np.abs(change).max() < SMALL:
                return Point(z, self.tangent(z, start.tangent))
        return None

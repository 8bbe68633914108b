"""`jacobian` and `spectrum`: how a state answers to small changes."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import tangents
from tokenflock.engines.place import placed
from tokenflock.errors import SimulationError, require
from tokenflock.precision import cast, precision
from tokenflock.solvers.adaptive import Adaptive, Method
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.start import Start
from tokenflock.verbs.flow_map import differentiable_solver, step_count
from tokenflock.verbs.overflow import remedies
from tokenflock.verbs.prepare import as_start, prepare
from tokenflock.verbs.schedule import check, check_kinds

RESTING = 1e-4  # speed of tokens beyond which a state is not at rest, per unit of the fastest rate


def jacobian(
    dynamics: Dynamics,
    state: Start | np.ndarray,
    t: float | None = None,
    solver: Solver | None = None,
    *,
    seed: int = 0,
) -> np.ndarray:
    """The derivative of a law, or of its map over a time t, on the tangent spaces of all tokens.

        J = D velocity(x)   or, with t,   J = D phi_t(x),   phi_t = flow_map(dynamics, t, solver)

    as a matrix of n m rows and columns in orthonormal tangent vectors at each token (of phi_t(x)
    for the rows of a map): m = d - 1 on the sphere, d in R^d. The derivative of one layer is
    `jacobian(law, x, t=h, solver=Layer(h))`.

    Args:
      dynamics: the law of motion.
      state: tokens (n, d), or a start law (`Given` for weights).
      t: over how long; the velocity itself unless given.
      solver: of the map.
      seed: of the start.

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Polygon
    >>> J = jacobian(SelfAttention(beta=1.0), Polygon(n=2))
    >>> J.shape, round(float(np.linalg.eigvals(J).real.max()), 6)  # 2 / (1 + e^2)
    ((2, 2), 0.238406)
    """
    return _derivative(dynamics, state, t, solver, seed)[0]


def spectrum(
    dynamics: Dynamics,
    state: Start | np.ndarray,
    t: float | None = None,
    solver: Solver | None = None,
    *,
    seed: int = 0,
) -> xr.Dataset:
    """Eigenvalues of a state that is at rest: which small changes grow, and how fast.

        rate + i frequency = eigenvalues of D velocity(x),   or log(eigenvalues of D phi_t(x)) / t

    so that a change along a mode grows like e^{rate t}. Rotations of everything, under which
    isotropic laws do not change, are modes of rate 0.

    Args:
      dynamics, state, t, solver, seed: as for `jacobian`.

    Returns a Dataset with `rate` and `frequency` (mode), the fastest first, `direction` (mode,
    particle, coord), the real part of each mode with length one, and `moves`, how far from rest
    the state is: the greatest speed of a token, or the greatest move in t. Warns where that is not
    small: the rates of a state that moves say nothing about what grows along its way.

    >>> from tokenflock.dynamics import SelfAttention
    >>> consensus = spectrum(SelfAttention(beta=4.0), np.eye(2)[[0, 0, 0]])
    >>> (consensus.rate.values.round(6) + 0).tolist(), float(consensus.moves) < 1e-12
    ([0.0, -1.0, -1.0], True)
    """
    J, before, moves, recipe = _derivative(dynamics, state, t, solver, seed)
    values, vectors = np.linalg.eig(J)
    values = values.astype(complex)
    if t is not None:
        with np.errstate(divide="ignore"):
            values = np.log(values) / t
    _warn_unless_at_rest(moves / (t or 1.0), values)
    order = np.argsort(-np.real(values), kind="stable")
    n, _, m = before.shape
    parts = np.real(vectors[:, order]).T.reshape(-1, n, m)
    directions = np.einsum("iap,kip->kia", before, parts)
    size = np.sqrt(np.sum(directions**2, axis=(1, 2), keepdims=True))
    recipe = {"verb": "spectrum", **recipe, "versions": recipes.versions("jax", "numpy")}
    return xr.Dataset(
        {
            "rate": (("mode",), np.real(values)[order], {"long_name": "growth rate"}),
            "frequency": (("mode",), np.imag(values)[order], {"long_name": "angular frequency"}),
            "direction": (("mode", "particle", "coord"), directions / np.where(size > 0, size, 1)),
            "moves": ((), moves, {"long_name": "distance from rest"}),
        },
        attrs={"title": f"tokenflock: {dynamics!r}", "recipe": recipes.dumps(recipe)},
    )


def _warn_unless_at_rest(speed: float, rates: np.ndarray) -> None:
    """Warn where tokens move. The rates set the scale, as laws have clocks of their own."""
    sizes = np.abs(rates[np.isfinite(rates)])
    if speed > RESTING * sizes.max(initial=1.0):
        warnings.warn(
            f"the state is not at rest: tokens move at a speed of {speed:.3g}, and rates are those"
            " of a state at rest; bring it to rest with simulate(..., until=Stationary()), or take"
            " lyapunov for growth along the run",
            RuntimeWarning,
            stacklevel=3,
        )


def _derivative(
    dynamics: Dynamics, state: Start | np.ndarray, t: float | None, solver: Solver | None, seed: int
) -> tuple[np.ndarray, np.ndarray, float, dict]:
    """(matrix, tangent vectors at the state, how far it moves, recipe)."""
    check_kinds(dynamics, (), seed, solver=solver)
    start = as_start(dynamics, state)
    require(
        t is not None or solver is None, "solver", "left out where t is", solver, "write e.g. t=0.1"
    )
    if t is not None:
        solver = differentiable_solver(dynamics, solver)
    solver = solver or Adaptive(method=Method.TSIT5)
    check(dynamics, start, solver, 1.0 if t is None else t, None, 2)
    require(t is None or not dynamics.noisy, "dynamics", "without noise where t is given", dynamics)
    with precision("float64"), placed(*start.shape):
        law, x, w, _ = prepare(dynamics, start, seed, "float64")
        if t is None:
            move, D = tangents.of_velocity(law, x, w, jnp.zeros(()))
            after = x
        else:
            how, steps = solver, 0
            if isinstance(solver, FixedStep):
                how, steps = cast(solver, "float64"), step_count(solver, t)
            after, D = tangents.of_map(law, how, x, w, jnp.asarray(t), steps)
            move = after - x
        before, behind = (np.asarray(law.space.frame(points)) for points in (x, after))
        J = tangents.restricted(D, before, behind)
    if not np.isfinite(J).all():
        ways = remedies(dynamics, "float64")
        raise SimulationError(f"the derivative of {dynamics!r:.200} is not finite; {ways}")
    speed = float(np.linalg.norm(np.asarray(move), axis=1).max())
    recipe = {"dynamics": dynamics, "start": start, "t": t, "seed": seed}
    return J, before, speed, recipe if t is None else recipe | {"solver": solver}

"""`flow_map`: a run as a function that JAX can differentiate."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Key

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines import differentiable
from tokenflock.errors import require, require_number
from tokenflock.frozen import concrete
from tokenflock.precision import cast
from tokenflock.shapes import Array, Time, Tokens, Weights
from tokenflock.solvers.adaptive import Adaptive, Method
from tokenflock.solvers.solver import FixedStep, Solver
from tokenflock.starts.given import Given
from tokenflock.verbs.schedule import check, check_kinds, schedule
from tokenflock.verbs.simulate import default_solver

FlowMap = Callable[..., jax.Array]


def flow_map(
    dynamics: Dynamics,
    t: Time = 1.0,
    solver: Solver | None = None,
    *,
    forward: bool = False,
    checkpoint: bool = True,
) -> FlowMap:
    """The map x(0) -> x(t) of a law of motion, as a pure function for `jax.grad`, `jacfwd`,
    `jacrev`, `vmap` and `jit`.

        phi = flow_map(dynamics, t, solver);   x(t) = phi(x),  phi(x, w),  phi(x, w, key)

    for tokens x (n, d), weights w (equal unless given), and for noisy laws the key of the noise.
    With solver `Layer(h)` it is a Transformer of t / h layers. Numbers are those of `simulate`, in
    the precision of x: inside `with precision("float64")` all digits are kept. Tokens are brought
    to the space first, so that derivatives along the normals of the sphere are 0.

    A law is a tree of numbers: make it, and its map, inside the function that is differentiated,
    and beta, Q, K, V are its arguments.

    Args:
      dynamics: the law of motion; its numbers may be JAX values.
      t: how long; with an adaptive solver it may be a JAX value.
      solver: `Adaptive()` unless given; laws with noise need one of fixed step, which is used as it
        is.
      forward: of an adaptive solver, differentiate forwards (`jvp`, `jacfwd`) in place of backwards
        (`grad`, `jacrev`, `vjp`); fixed steps do both.
      checkpoint: of fixed steps, compute again on the way back what would fill the memory: N steps
        then hold about 2 sqrt(N) states.

    At beta = 0 the cosine of two tokens is tanh(t + artanh c(0)):

    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.solvers import RK4
    >>> def cosine(x, beta):
    ...     y = flow_map(SelfAttention(beta=beta), 1.0, RK4(h=0.05))(x)
    ...     return y[0] @ y[1]
    >>> by_x, by_beta = jax.grad(cosine, argnums=(0, 1))(np.eye(2), 0.0)
    >>> print(f"{by_x[0, 1]:.4f} {1 / np.cosh(1) ** 2:.4f} {by_beta < 0}")
    0.4200 0.4200 True
    """
    check_kinds(dynamics, (), 0, solver=solver)
    if concrete(t):
        require_number("t", t, "write e.g. t=10")
    solver = differentiable_solver(dynamics, solver)
    forwards_is_free = not forward or isinstance(solver, Adaptive)
    require(forwards_is_free, "forward", "False for fixed steps, which do both", forward)
    if isinstance(solver, FixedStep):
        require(concrete(t), "t", "a number, with a solver of fixed step", t, "use Adaptive")
    how = differentiable.How(forward, checkpoint)

    def phi(x: Tokens, w: Weights | None = None, key: Key[Array, ""] | None = None) -> jax.Array:
        x = jnp.asarray(x)
        x = x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)
        _fits(dynamics, solver, x, w, t, key)
        w = jnp.full(len(x), 1 / len(x), x.dtype) if w is None else jnp.asarray(w, x.dtype)
        return _advanced(dynamics, solver, x, w, t, key, how)

    return phi


def differentiable_solver(dynamics: Dynamics, solver: Solver | None) -> Solver:
    """Return the solver, or the default, of a run that JAX differentiates; raise where there is
    none.
    """
    chosen = solver or default_solver(dynamics)
    if isinstance(chosen, Adaptive):
        noise = "write solver=EulerMaruyama(h=0.01), and compare with half the step"
        still = not dynamics.noisy
        require(still, "solver", "of fixed step, for a law with noise", repr(solver), noise)
        known = chosen.method is not Method.CHEBYSHEV
        require(known, "solver", "one that JAX differentiates", repr(solver), "write Adaptive()")
    return chosen


def _advanced(
    dynamics: Dynamics,
    solver: Solver,
    x: jax.Array,
    w: jax.Array,
    t: Time,
    key: Key[Array, ""] | None,
    how: differentiable.How,
) -> jax.Array:
    """x(t), in the precision of x."""
    dtype = str(x.dtype)
    law, tokens = cast(dynamics, dtype), dynamics.space.project(x)
    key = jax.random.key(0) if key is None else key
    scheme, steps = solver, 0
    if isinstance(solver, FixedStep):
        scheme, steps = cast(solver, dtype), step_count(solver, float(t))
    return jnp.asarray(differentiable.advanced(law, scheme, tokens, w, t, steps, key, how))


def _fits(
    dynamics: Dynamics,
    solver: Solver,
    x: jax.Array,
    w: Weights | None,
    t: Time,
    key: Key[Array, ""] | None,
) -> None:
    """Refuse what `simulate` would refuse, and noise without a key."""
    require(x.ndim == 2 and x.size > 0, "x", "tokens of shape (n, d)", f"shape {x.shape}")
    shape = (len(x),) if w is None else jnp.shape(w)
    require(shape == (len(x),), "w", f"one weight for each of {len(x)} tokens", f"shape {shape}")
    check(dynamics, Given(np.ones(x.shape)), solver, float(t) if concrete(t) else 1.0, None, 2)
    require(
        key is not None or not dynamics.noisy,
        "key",
        "the key of the noise, since the law is noisy",
        key,
        "write e.g. key=jax.random.key(0)",
    )


def step_count(solver: FixedStep, t: float) -> int:
    """How many steps lead to t."""
    steps, _ = schedule(solver, t, None, 2)
    if steps is None:
        raise ValueError("a solver of fixed step has a number of steps")
    return int(steps[-1])

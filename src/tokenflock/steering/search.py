"""`steer`: laws that carry given clouds to given targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.engines.controlled import trajectories
from tokenflock.engines.course import Course
from tokenflock.engines.place import on_cpu
from tokenflock.errors import SimulationError, require, require_number, require_whole
from tokenflock.meanfield.distances import wasserstein
from tokenflock.meanfield.potential import on_sphere
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array
from tokenflock.solvers.adaptive import Adaptive, Method
from tokenflock.solvers.heun import Heun
from tokenflock.solvers.solver import FixedStep
from tokenflock.steering.matching import cost, couplings
from tokenflock.steering.pieces import LETTERS, Pieces, carry, random_pieces

BLOCK = 25  # steps of the search between two couplings
WARM = 300  # steps in which the rate rises, at most a fifth of all
LAST = 0.05  # share of the rate at the end


def steer(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    pieces: int = 8,
    heads: int = 2,
    width: int = 16,
    t: float = 4.0,
    solver: FixedStep | None = None,
    steps: int = 1500,
    rate: float = 0.03,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Look for a Transformer that carries N clouds of tokens to N targets, all by the same law.

        minimise (1/N) sum_k W_2(phi_t(input_k), target_k)^2

    over Q, K, V of every head and the feed-forward part W tanh(A x + b), constant on `pieces` equal
    pieces of [0, t]. Each cloud is a system of its own, and its tokens see each other; clouds do
    not. The gradient goes through the flow and through optimal couplings (W_2 of the angle), the
    search is Adam in float32, the result is computed in float64. Source: arXiv 2411.04551, where
    such laws exist for measures that can be told apart. On the circle narrow clouds keep their
    order, as points of one flow do: give targets in the order of the inputs.

    Args:
      inputs: clouds (N, n, d).
      targets: clouds (N, m, d), or points (N, d).
      pieces, heads: pieces of time, with a law each, and heads of attention.
      width: neurons of the feed-forward part; 0 for attention alone.
      t: final time.
      solver: of fixed step, `Layer(h)` for the layer map. Unless given, the search takes
        `Heun(h=0.1)`, and `x` and `W2` are those of the flow of what it found, by controlled steps.
      steps, rate: of the search; the rate falls like a cosine.
      seed: of the first guess.
      progress: called with the share of the work that is done.

    Returns a Dataset with `x` (cloud, time, particle, coord), `target` (cloud, point, coord), `W2`
    (cloud) at the end, `loss` (step) of the search, and the law: `Q`, `K`, `V` (piece, head, ...),
    `W`, `A`, `b` (piece, ...), of which `steering.laws` makes laws of the catalogue.

    >>> from tokenflock.steering import clouds
    >>> result = steer(clouds(2, 4), clouds(2, 1, seed=1)[:, 0], pieces=2, heads=1, steps=50)
    >>> result.x.dims, bool(result.loss[-1] < result.loss[0])
    (('cloud', 'time', 'particle', 'coord'), True)
    """
    x, y = _pairs(inputs, targets)
    accurate, solver = solver is None, solver or Heun(h=0.1)
    _check({"pieces": pieces, "heads": heads, "steps": steps}, width, rate, solver)
    each = _steps(solver, t, pieces)
    first = random_pieces(pieces, heads, width, x.shape[2], seed)
    with on_cpu():
        best, losses = _descend(first, x, y, solver, each, steps, rate, progress)
        times = np.linspace(0, t / pieces, each + 1)
        frames = _flowed(best, x, times) if accurate else _frames(best, x, solver, each)
    W2 = np.array([wasserstein(cloud[-1], aim) for cloud, aim in zip(frames, y)])
    recipe: dict[str, Any] = {"verb": "steer", "pieces": pieces, "heads": heads, "width": width}
    recipe |= {"t": t, "solver": solver, "steps": steps, "rate": rate, "seed": seed}
    recipe["versions"] = recipes.versions("jax", "optax")
    return _dataset(best, frames, y, W2, losses, t, recipe)


def _pairs(inputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clouds (N, n, d), and for each of them a target (N, m, d)."""
    x, y = _clouds(inputs, "inputs"), _clouds(targets, "targets")
    require(len(x) == len(y), "targets", f"one for each of {len(x)} clouds", f"{len(y)}")
    require(x.shape[2] == y.shape[2], "targets", f"in R^{x.shape[2]}", f"R^{y.shape[2]}")
    return x, y


def _check(counts: dict[str, int], width: int, rate: float, solver: FixedStep) -> None:
    """Refuse a search of nothing, and solvers that choose their steps."""
    for name, count in counts.items():
        require_whole(name, count, 1)
    require_whole("width", width, 0)
    require(0 < rate < np.inf, "rate", "positive", rate, "write e.g. rate=0.03")
    require(isinstance(solver, FixedStep), "solver", "one of fixed step", repr(solver))


def _clouds(given: np.ndarray, name: str) -> np.ndarray:
    """Clouds (N, n, d) on the sphere; points (N, d) are clouds of one."""
    x = np.asarray(given, dtype=np.float64)
    x = x[:, None] if x.ndim == 2 and name == "targets" else x
    fine = x.ndim == 3 and x.size > 0 and x.shape[2] >= 2 and bool(np.isfinite(x).all())
    wanted = "clouds (N, n, d)" + (" or points (N, d)" if name == "targets" else "")
    require(fine, name, f"{wanted} of finite numbers", f"shape {np.shape(given)}")
    return on_sphere(x.reshape(-1, x.shape[2])).reshape(x.shape)


def _steps(solver: FixedStep, t: float, pieces: int) -> int:
    """Steps of the solver in each piece."""
    require_number("t", t, "write e.g. t=4")
    require(0 < t < np.inf, "t", "a positive final time", t, "write e.g. t=4")
    each = round(t / pieces / solver.h)
    fits = each >= 1 and abs(each * pieces * solver.h - t) < 1e-6 * t
    nearest = max(1, each) * pieces * solver.h
    require(
        fits, "t", f"a multiple of {pieces} pieces of steps {solver.h:g}", t, f"write t={nearest:g}"
    )
    return each


def _descend(
    pieces: Pieces,
    x: np.ndarray,
    y: np.ndarray,
    solver: FixedStep,
    each: int,
    steps: int,
    rate: float,
    progress: Callable[[float], None] | None,
) -> tuple[Pieces, np.ndarray]:
    """(the pieces at the end of the search, the loss at each step)."""
    losses: list[np.ndarray] = []
    with precision("float32"):
        current = cast(pieces, "float32")
        state = _adam(rate, steps).init(eqx.filter(current, eqx.is_inexact_array))
        clouds, targets = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
        reached = clouds  # at first each token is meant for what is near to where it is
        for begin in range(0, steps, BLOCK):
            plans = jnp.asarray(couplings(np.asarray(reached, float), y), jnp.float32)
            size = min(BLOCK, steps - begin)
            current, state, reached, block = _block(
                current, state, clouds, targets, plans, solver, each, size, (rate, steps)
            )
            losses.append(np.asarray(block))
            if not np.isfinite(losses[-1]).all():
                raise SimulationError(
                    "the search left the numbers; take a smaller rate, or a smaller step h"
                )
            if progress:
                progress((begin + size) / steps)
    return current, np.concatenate(losses)


def _adam(rate: float, steps: int) -> optax.GradientTransformation:
    """Adam with a rate that rises and then falls, and gradients of length one at most."""
    warm = min(WARM, steps // 5)
    decay = optax.warmup_cosine_decay_schedule(0.0, rate, warm, steps, LAST * rate)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(decay))


@eqx.filter_jit
def _block(
    pieces: Pieces,
    state: Any,
    x: Array,
    y: Array,
    plans: Array,
    solver: FixedStep,
    each: int,
    size: int,
    search: tuple[float, int],
) -> tuple[Pieces, Any, Array, Array]:
    """So many steps of the search, of a rate and a length, with the same couplings."""
    adam = _adam(*search)

    def loss(pieces: Pieces) -> tuple[Array, Array]:
        end, _ = carry(pieces, x, solver, solver.h, each)
        return cost(end, y, plans), end

    def step(held: Any, number: None) -> tuple[Any, Array]:
        pieces, state, _ = held
        (value, end), slope = jax.value_and_grad(loss, has_aux=True)(pieces)
        change, state = adam.update(slope, state, pieces)
        return (optax.apply_updates(pieces, change), state, end), value

    (pieces, state, end), values = jax.lax.scan(step, (pieces, state, x), None, length=size)
    return pieces, state, end, values


@eqx.filter_jit
def _carried(pieces: Pieces, x: Array, solver: FixedStep, each: int) -> tuple[Array, Array]:
    return carry(pieces, x, solver, solver.h, each)


def _frames(pieces: Pieces, x: np.ndarray, solver: FixedStep, each: int) -> np.ndarray:
    """Return the clouds (N, time, n, d) from the start on by fixed steps, in float64."""
    with precision("float64"):
        _, frames = _carried(cast(pieces, "float64"), jnp.asarray(x), solver, each)
        return np.concatenate([x[None], np.asarray(frames)]).transpose(1, 0, 2, 3)


def _flowed(pieces: Pieces, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the clouds (N, time, n, d) from the start on under the flow; `times` are those of a
    piece.
    """
    frames = [x[:, None]]
    w = np.full(x.shape[1], 1 / x.shape[1])
    for k in range(len(pieces.V)):
        law, solver = pieces.part(k).law(), Adaptive(rtol=1e-8, method=Method.TSIT5)
        course = Course(law, solver, x, w, times, solver.tolerances("float64"))
        frames.append(trajectories(course, frames[-1][:, -1])["x"][:, 1:])
    return np.concatenate(frames, axis=1)


def _dataset(
    pieces: Pieces,
    frames: np.ndarray,
    y: np.ndarray,
    W2: np.ndarray,
    losses: np.ndarray,
    t: float,
    recipe: dict[str, Any],
) -> xr.Dataset:
    arrays = {name: getattr(pieces, name) for name in LETTERS}
    matrices = {
        name: (("piece", *LETTERS[name]), np.asarray(array, float))
        for name, array in arrays.items()
        if array is not None
    }
    variables = {
        "x": (("cloud", "time", "particle", "coord"), frames, {"long_name": "tokens"}),
        "target": (("cloud", "point", "coord"), y, {"long_name": "targets"}),
        "W2": (("cloud",), W2, {"long_name": "Wasserstein distance to the target"}),
        "loss": (("step",), losses, {"long_name": "mean of squared distances"}),
        **matrices,
    }
    heads, width, count = recipe["heads"], recipe["width"], recipe["pieces"]
    attrs = {
        "title": f"tokenflock: steering by {count} pieces, {heads} heads, {width} neurons",
        "convention": recipe["solver"].convention,
        "period": t / count,
        "recipe": recipes.dumps(recipe),
    }
    coords = {"time": ("time", np.linspace(0, t, frames.shape[1]), {"long_name": "time"})}
    return xr.Dataset(variables, coords, attrs)

"""A law, a solver, observables and a start as equations of JAX, for any number of tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError
from tokenflock.observables.observable import Observable, on_sphere
from tokenflock.precision import cast, precision
from tokenflock.solvers.solver import FixedStep
from tokenflock.spaces import Sphere
from tokenflock.starts.start import Start

Spec = jax.ShapeDtypeStruct


@dataclass(frozen=True)
class Parameter:
    """A number or an array of a law that the page may change."""

    name: str
    value: np.ndarray


@dataclass(frozen=True)
class Law:
    """A law split into its parameters and the rest, and the number of its tokens."""

    parameters: tuple[Parameter, ...]
    d: int
    n: Any  # a whole number where the law asks for it, else a symbol
    build: Callable[[Sequence[Any]], Dynamics]


def split(dynamics: Dynamics, d: int) -> Law:
    """The parameters of a law, and how it is made of them. Call it inside `precision`."""
    law = cast(dynamics, "float64")
    numbers, rest = eqx.partition(law, eqx.is_inexact_array)
    leaves, shape = jax.tree_util.tree_flatten_with_path(numbers)
    parameters = tuple(Parameter(_path(path), np.asarray(leaf)) for path, leaf in leaves)
    n = many(d) if law.particles is None else law.particles

    def build(values: Sequence[Any]) -> Dynamics:
        return eqx.combine(jax.tree_util.tree_unflatten(shape, values), rest)

    return Law(parameters, d, n, build)


def many(d: int) -> Any:
    """A number of tokens that is not said, but more than the dimension."""
    (n,) = jax.export.symbolic_shape("n", constraints=[f"n >= {d + 1}"])
    return n


def _path(path: Sequence[Any]) -> str:
    return jax.tree_util.keystr(tuple(path)).lstrip(".")


class Moment(NamedTuple):
    """What a step, or a piece of one, may depend on."""

    t: Any
    h: Any
    x: Any
    w: Any
    key: Any
    said: Any = None  # what a sublayer says to each token
    noise: Any = None  # the increment of each token


Act = Callable[[Dynamics, Moment], Any]


def act_of(solver: FixedStep) -> Act:
    """A whole step of a solver."""

    def act(law: Dynamics, now: Moment) -> Any:
        timed = eqx.tree_at(lambda solver: solver.h, solver, now.h)
        return timed.step(law, now.t, now.x, now.w, now.key)

    return act


def step(law: Law, act: Act, arrays: int = 0) -> Any:
    """The equations of one step: (parameters, x, w, t, h, key, index) -> x; of a piece of one, with
    so many more `arrays` of the shape of x: what was said, and the noise.
    """

    def forward(values, x, w, t, h, key, index, *more):
        own = jax.random.fold_in(jax.random.wrap_key_data(key), index)
        return act(law.build(values), Moment(t, h, x, w, own, *more))

    scalar, tokens = Spec((), jnp.float64), _tokens(law)
    random = Spec((2,), jnp.uint32), Spec((), jnp.int32)
    return _traced(forward, *tokens, scalar, scalar, *random, *([tokens[1]] * arrays))


def formula(function: Callable, count: int) -> Any:
    """The equations of a number that depends on so many numbers."""
    return _traced(function, *([Spec((), jnp.float64)] * count))


def projection(law: Law) -> Any:
    """The equations that bring tokens to where the law's tokens live: (parameters, x) -> x."""

    def project(values, x):
        return law.build(values).space.project(x)

    return _traced(project, *_tokens(law)[:2])


def observation(law: Law, observable: Observable) -> Any:
    """The equations of an observable: (parameters, x, w) -> value."""

    def look(values, x, w):
        now = law.build(values)
        bound = cast(observable, "float64").bind(now)
        if isinstance(now.space, Sphere):
            return on_sphere(bound, x, w)
        return bound.measure(x, w)

    return _traced(look, *_tokens(law))


def drawing(start: Start, d: int, names: Sequence[str] = ()) -> Any:
    """The equations of a start: (key, numbers of these names) -> (tokens, key of the noise), as
    `simulate` draws them.
    """
    law = _unbound(start, d, many(d))

    def draw(key, values):
        own = law
        for name, value in zip(names, values):
            own = _with(own, name, value)
        first, noise = jax.random.split(jax.random.wrap_key_data(key))
        return own.draw(first), jax.random.key_data(noise)

    with precision("float32"):
        scalars = [Spec((), jnp.float32) for _ in names]
        return _traced(draw, Spec((2,), jnp.uint32), scalars)


def _unbound(start: Start, d: int, n: Any) -> Start:
    """A start of n tokens in R^d, where n is a symbol; the start that it is built on too."""
    names = [field.name for field in dataclasses.fields(start)]
    for name in names:
        inner = getattr(start, name)
        if isinstance(inner, Start):
            return _with(start, name, _unbound(inner, d, n))
    if "n" not in names:
        raise UserError(f"the tokens of {type(start).__name__} are so many as they are")
    sizes = {"n": d + 1, "d": d}
    checked = dataclasses.replace(start, **{name: sizes[name] for name in sizes if name in names})
    return _with(checked, "n", n)


def _with(start: Start, name: str, value: Any) -> Start:
    """A start with another field, unchecked: a symbol is no number."""
    fresh = object.__new__(type(start))
    for field in dataclasses.fields(start):
        object.__setattr__(fresh, field.name, getattr(start, field.name))
    object.__setattr__(fresh, name, value)
    return fresh


def _tokens(law: Law) -> tuple[Any, Any, Any]:
    values = [Spec(parameter.value.shape, jnp.float64) for parameter in law.parameters]
    return values, Spec((law.n, law.d), jnp.float64), Spec((law.n,), jnp.float64)


def _traced(function: Callable, *specs: Any) -> Any:
    """The equations of a function, or one line that says why there are none."""
    try:
        return jax.jit(function).trace(*specs).jaxpr
    except UserError:
        raise
    except Exception as error:
        line = str(error).partition("\n")[0]
        raise UserError(f"the page needs equations for any number of tokens: {line}") from error

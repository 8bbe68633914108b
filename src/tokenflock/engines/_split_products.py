"""Single precision on tensor cores that multiply half precision: each matrix is split into the sum
of two, high and low.

a = a_1 + a_2 and b = b_1 + b_2 to 22 bits, so a b = a_1 b_1 + a_1 b_2 + a_2 b_1 up to 2^-22. Rows
of a and columns of b are divided by their largest entry before and multiplied by it after, so that
nothing leaves the range of half precision. A large matrix that is read again at every step comes in
halves from the beginning (`halves`): they go from memory to the tensor cores as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, primitives

from tokenflock.dynamics._tiles import RAISED, split


class Halves(NamedTuple):
    """A matrix a = scale (high + low) in half precision."""

    high: Any
    low: Any
    scale: Any

    @property
    def T(self) -> Halves:
        """The transposed matrix."""
        return Halves(self.high.T, self.low.T, self.scale)

    def joined(self) -> jax.Array:
        """The matrix itself."""
        return (self.high.astype(jnp.float32) + self.low.astype(jnp.float32)) * self.scale


def halves(a: jax.Array) -> Halves:
    """A matrix, or many, relative to its largest entry; for use outside of a kernel."""
    top = jnp.max(jnp.abs(a), axis=(-2, -1), keepdims=True)
    top = jnp.where(top == 0, 1, top)
    return Halves(*split(a / top), 2.0**-RAISED * top[..., 0, 0])


@dataclass(frozen=True)
class Lookup:
    """A matrix that is read where it is used: what is never used is never read."""

    shape: jax.ShapeDtypeStruct
    read: Callable[[], Any]


def whole(value: Any) -> Any:
    """A matrix as it is, wherever it comes from; anything else as it came."""
    value = value.read() if isinstance(value, Lookup) else value
    return value.joined() if isinstance(value, Halves) else value


def with_split_products(function: Callable) -> Callable:
    """The same function of (tokens, ...), with its matrix products done so; matrices may be
    `Lookup`, as `Halves`.

    Those inside its loops stay as they are.
    """

    def evaluate(x: jax.Array, *rest: Any) -> Any:
        flat, tree = jax.tree.flatten((x, *rest))
        shapes = [leaf.shape if isinstance(leaf, Lookup) else leaf for leaf in flat]
        arguments = jax.tree.unflatten(tree, shapes)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = _evaluate(closed.jaxpr, closed.consts, flat, {closed.jaxpr.invars[0]})
        return jax.tree.unflatten(jax.tree.structure(shape), values)

    return evaluate


def _evaluate(jaxpr: Any, consts: list[Any], inputs: list[Any], units: set[Any]) -> list[Any]:
    """The values of a traced function.

    `units` are its variables that hold unit vectors: they need no scale.
    """
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs)))

    def read(variable: Any) -> Any:
        if isinstance(variable, Literal):
            return variable.val
        value = values[variable]
        return value.read() if isinstance(value, Lookup) else value

    for equation in jaxpr.eqns:
        given = [read(variable) for variable in equation.invars]
        unit = [
            not isinstance(variable, Literal) and variable in units for variable in equation.invars
        ]
        call = equation.params.get(
            "jaxpr" if equation.primitive is primitives.jit_p else "call_jaxpr"
        )
        if equation.primitive is primitives.dot_general_p and all(map(_is_matrix, given)):
            (a, b), (unit_a, unit_b) = given, unit
            results = [_product(a, b, unit_a, unit_b, equation.params["dimension_numbers"])]
        elif call is not None:
            inner = {variable for variable, is_unit in zip(call.jaxpr.invars, unit) if is_unit}
            results = _evaluate(call.jaxpr, call.consts, given, inner)
        elif equation.primitive is primitives.transpose_p and isinstance(given[0], Halves):
            results = [given[0].T]
        else:
            bound = equation.primitive.bind(*map(whole, given), **equation.params)
            results = bound if equation.primitive.multiple_results else [bound]
        if equation.primitive is primitives.transpose_p and unit[0]:
            units = units | set(equation.outvars)
        values |= zip(equation.outvars, results)
    return [read(variable) for variable in jaxpr.outvars]


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Halves) or jnp.ndim(value) == 2


def _product(a: Any, b: Any, unit_a: bool, unit_b: bool, dimensions: Any) -> jax.Array:
    """a b for matrices, contracted over any side of each."""
    ((i,), (j,)), _ = dimensions
    (a_1, a_2, row), (b_1, b_2, column) = _split(a, i, unit_a), _split(b, j, unit_b)

    def times(left: jax.Array, right: jax.Array) -> jax.Array:
        return jax.lax.dot_general(left, right, dimensions, jax.lax.Precision.DEFAULT, jnp.float32)

    y = times(a_2, b_1) + times(a_1, b_2) + times(a_1, b_1)
    y = y if row is None else y * (row[:, None] if jnp.ndim(row) else row)
    return y if column is None else y * column


def _split(a: Any, axis: int, unit: bool) -> Halves:
    """The halves of a matrix, each line with a scale of its own; no scale for unit vectors."""
    if isinstance(a, Halves):
        return a
    scale = None
    if not unit:
        top = jnp.max(jnp.abs(a), axis=axis, keepdims=True)
        top = jnp.where(top == 0, 1, top)
        a, scale = a * (1 / top), top.reshape(-1)
    high = a.astype(jnp.float16)
    return Halves(high, (a - high.astype(jnp.float32)).astype(jnp.float16), scale)

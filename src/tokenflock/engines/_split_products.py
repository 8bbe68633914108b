"""Single precision on tensor cores that multiply half precision: each matrix is split into the sum
of two, high and low.

a = a_1 + a_2 and b = b_1 + b_2 to 22 bits, so a b = a_1 b_1 + a_1 b_2 + a_2 b_1 up to 2^-22. Rows
of a and columns of b are divided by their largest entry before and multiplied by it after, so that
nothing leaves the range of half precision; where a bound of all entries is known beforehand (unit
vectors, and their products with such matrices), it takes the place of the largest. A large matrix
that is used at every step comes in halves from the beginning (`halves`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, primitives

from tokenflock.dynamics._tiles import RAISED, split

UNIT = object()  # the bound of the entries of unit vectors, which need no scale


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


def with_split_products(function: Callable, ahead: bool = False) -> Callable:
    """The same function of (tokens, ...), with its matrix products done so; matrices may be
    `Lookup`, as `Halves`, and go `ahead` where products are taken as (b^T a^T)^T: tensor cores
    read the first factor from shared memory as it lies there, 64 rows at a time.

    Those inside its loops stay as they are.
    """

    def evaluate(x: jax.Array, *rest: Any) -> Any:
        flat, tree = jax.tree.flatten((x, *rest))
        shapes = [leaf.shape if isinstance(leaf, Lookup) else leaf for leaf in flat]
        arguments = jax.tree.unflatten(tree, shapes)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = _evaluate(closed.jaxpr, closed.consts, flat, {closed.jaxpr.invars[0]: UNIT}, ahead)
        return jax.tree.unflatten(jax.tree.structure(shape), values)

    return evaluate


def _evaluate(
    jaxpr: Any, consts: list[Any], inputs: list[Any], bounds: dict[Any, Any], ahead: bool
) -> list[Any]:
    """The values of a traced function.

    `bounds` are those known of the entries of its variables; UNIT is that of unit vectors.
    """
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs)))

    def read(variable: Any) -> Any:
        if isinstance(variable, Literal):
            return variable.val
        value = values[variable]
        return value.read() if isinstance(value, Lookup) else value

    for equation in jaxpr.eqns:
        given = [read(variable) for variable in equation.invars]
        known = [
            None if isinstance(variable, Literal) else bounds.get(variable)
            for variable in equation.invars
        ]
        call = equation.params.get(
            "jaxpr" if equation.primitive is primitives.jit_p else "call_jaxpr"
        )
        if equation.primitive is primitives.dot_general_p and all(map(_is_matrix, given)):
            (a, b), (top_a, top_b) = given, known
            turned = ahead and isinstance(b, Halves) and not isinstance(a, Halves)
            sides = equation.params["dimension_numbers"]
            results = [_product(a, b, top_a, top_b, sides, turned)]
            bounds = bounds | {equation.outvars[0]: _bound(a, b, top_a, top_b)}
        elif call is not None:
            inner = dict(zip(call.jaxpr.invars, known))
            results = _evaluate(call.jaxpr, call.consts, given, inner, ahead)
        elif equation.primitive is primitives.transpose_p and isinstance(given[0], Halves):
            results = [given[0].T]
        else:
            bound = equation.primitive.bind(*map(whole, given), **equation.params)
            results = bound if equation.primitive.multiple_results else [bound]
        if equation.primitive is primitives.transpose_p:
            bounds = bounds | {equation.outvars[0]: known[0]}
        values |= zip(equation.outvars, results)
    return [read(variable) for variable in jaxpr.outvars]


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Halves) or jnp.ndim(value) == 2


def _product(a: Any, b: Any, top_a: Any, top_b: Any, dimensions: Any, turned: bool) -> jax.Array:
    """a b for matrices, contracted over any side of each; tops are bounds of their entries."""
    ((i,), (j,)), _ = dimensions
    (a_1, a_2, row), (b_1, b_2, column) = _split(a, i, top_a), _split(b, j, top_b)

    def times(left: jax.Array, right: jax.Array) -> jax.Array:
        sides = (right, left, (((j,), (i,)), ((), ()))) if turned else (left, right, dimensions)
        return jax.lax.dot_general(*sides, jax.lax.Precision.DEFAULT, jnp.float32)

    y = times(a_2, b_1) + times(a_1, b_2) + times(a_1, b_1)
    y = y.T if turned else y
    y = y if row is None else y * (row[:, None] if jnp.ndim(row) else row)
    return y if column is None else y * column


def _bound(a: Any, b: Any, top_a: Any, top_b: Any) -> Any:
    """A bound of the entries of unit vectors times a matrix in halves; None for other products."""
    if top_a is UNIT and isinstance(b, Halves):
        matrix = b
    elif top_b is UNIT and isinstance(a, Halves):
        matrix = a
    else:
        return None
    return max(matrix.high.shape) ** 0.5 * 2.0**RAISED * matrix.scale


def _split(a: Any, axis: int, top: Any) -> Halves:
    """The halves of a matrix: as they are for unit vectors, relative to a known bound, or to the
    largest entry of each line.
    """
    if isinstance(a, Halves):
        return a
    scale = None
    if top is None:
        top = jnp.max(jnp.abs(a), axis=axis, keepdims=True)
        top = jnp.where(top == 0, 1, top)
        a, scale = a * (1 / top), top.reshape(-1)
    elif top is not UNIT:
        scale = 2.0**-RAISED * top
        a = a * (1 / scale)
    high = a.astype(jnp.float16)
    return Halves(high, (a - high.astype(jnp.float32)).astype(jnp.float16), scale)

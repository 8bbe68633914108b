"""Single precision on tensor cores that multiply half precision: each matrix is split into the sum
of two, high and low.

a = a_1 + a_2 and b = b_1 + b_2 to 22 bits, so a b = a_1 b_1 + a_1 b_2 + a_2 b_1 up to 2^-22. Rows
of a and columns of b are divided by their largest entry before and multiplied by it after, so that
nothing leaves the range of half precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, primitives


def with_split_products(function: Callable) -> Callable:
    """The same function of (tokens, ...), with its matrix products done so.

    Those inside its loops stay as they are.
    """

    def evaluate(x: jax.Array, *rest: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(x, *rest)
        flat = jax.tree.leaves((x, *rest))
        values = _evaluate(closed.jaxpr, closed.consts, flat, {closed.jaxpr.invars[0]})
        return jax.tree.unflatten(jax.tree.structure(shape), values)

    return evaluate


def _evaluate(jaxpr: Any, consts: list[Any], inputs: list[Any], units: set[Any]) -> list[Any]:
    """The values of a traced function.

    `units` are its variables that hold unit vectors: they need no scale.
    """
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs)))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    for equation in jaxpr.eqns:
        given = [read(variable) for variable in equation.invars]
        unit = [
            not isinstance(variable, Literal) and variable in units for variable in equation.invars
        ]
        call = equation.params.get(
            "jaxpr" if equation.primitive is primitives.jit_p else "call_jaxpr"
        )
        if equation.primitive is primitives.dot_general_p and all(
            jnp.ndim(value) == 2 for value in given
        ):
            (a, b), (unit_a, unit_b) = given, unit
            results = [_product(a, b, unit_a, unit_b, equation.params["dimension_numbers"])]
        elif call is not None:
            inner = {variable for variable, is_unit in zip(call.jaxpr.invars, unit) if is_unit}
            results = _evaluate(call.jaxpr, call.consts, given, inner)
        else:
            bound = equation.primitive.bind(*given, **equation.params)
            results = bound if equation.primitive.multiple_results else [bound]
        if equation.primitive is primitives.transpose_p and unit[0]:
            units = units | set(equation.outvars)
        values |= zip(equation.outvars, results)
    return [read(variable) for variable in jaxpr.outvars]


def _product(a: jax.Array, b: jax.Array, unit_a: bool, unit_b: bool, dimensions: Any) -> jax.Array:
    """a b for matrices, contracted over any side of each."""
    ((i,), (j,)), _ = dimensions
    (a_1, a_2, row), (b_1, b_2, column) = _split(a, i, unit_a), _split(b, j, unit_b)

    def times(left: jax.Array, right: jax.Array) -> jax.Array:
        return jax.lax.dot_general(left, right, dimensions, jax.lax.Precision.DEFAULT, jnp.float32)

    y = times(a_2, b_1) + times(a_1, b_2) + times(a_1, b_1)
    y = y if row is None else y * row[:, None]
    return y if column is None else y * column


def _split(a: jax.Array, axis: int, unit: bool) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """(high, low, scale) with a = scale (high + low); no scale for unit vectors."""
    scale = None
    if not unit:
        top = jnp.max(jnp.abs(a), axis=axis, keepdims=True)
        top = jnp.where(top == 0, 1, top)
        a, scale = a * (1 / top), top.reshape(-1)
    high = a.astype(jnp.float16)
    return high, (a - high.astype(jnp.float32)).astype(jnp.float16), scale

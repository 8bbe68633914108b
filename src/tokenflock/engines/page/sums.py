"""Sums, products, extremes: over axes that are written out term by term, over others in loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tokenflock.engines.page.elementwise import binary, compare, logic, select
from tokenflock.engines.page.fields import Field, Index, size, unrolled
from tokenflock.engines.page.graph import Graph, Node
from tokenflock.engines.page.views import view

OPS = {
    "reduce_sum": "+",
    "reduce_prod": "*",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "&&",
    "reduce_or": "||",
}


def combine(g: Graph, op: str, a: Node, b: Node) -> Node:
    """Two terms of a sum, a product, a maximum, ..."""
    if op in ("+", "*"):
        return binary(g, op, a, b)
    if op in ("&&", "||"):
        return logic(g, op[0], a, b)
    return g.node(op, (a, b), None, a.dtype)


def over(
    g: Graph, op: str, shape: Sequence[Any], index: Index, body: Callable[[Index], Node]
) -> Node:
    """The sum (product, maximum, ...) of body(k) over all indices k of a shape, where `index` is
    what else it depends on.
    """
    level = 1 + max((var.level for i in index for var in i.free), default=-1)
    axes: list[list[Node]] = []
    loops: list[Node] = []
    for dim in shape:
        if unrolled(g, dim):
            axes.append([g.const(k) for k in range(dim)])
        else:
            loops.append(g.var(level + len(loops), size(g, dim)))
            axes.append([loops[-1]])
    total = None
    for k in product(*axes):
        term = body(k)
        total = term if total is None else combine(g, op, total, term)
    if total is None:
        raise ValueError("a sum of nothing")
    for var in reversed(loops):
        total = g.reduce(op, var, total)
    return total


def _reduce(g: Graph, eqn: Any, a: Field) -> Field:
    axes = sorted(eqn.params["axes"])
    shape = [a.shape[axis] for axis in axes]

    def tell(index: Index) -> Node:
        def body(k: Index) -> Node:
            inner, outer = iter(k), iter(index)
            return a.at(
                next(inner) if axis in axes else next(outer) for axis in range(len(a.shape))
            )

        return over(g, OPS[eqn.primitive.name], shape, index, body)

    return view(eqn, tell)


def _extreme(g: Graph, eqn: Any, a: Field) -> Field:
    """The first index of the largest or smallest number along an axis."""
    (axis,) = eqn.params["axes"]
    op = "max" if eqn.primitive.name == "argmax" else "min"
    shape = [a.shape[axis]]
    end = size(g, a.shape[axis])

    def tell(index: Index) -> Node:
        def there(k: Index) -> Node:
            return a.at((*index[:axis], *k, *index[axis:]))

        top = over(g, op, shape, index, there)
        return over(
            g,
            "min",
            shape,
            index,
            lambda k: select(g, compare(g, "===", there(k), top), end, k[0]),
        )

    return view(eqn, tell)


def _dot_general(g: Graph, eqn: Any, a: Field, b: Field) -> Field:
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    shape = [a.shape[axis] for axis in left]
    free = [k for k in range(len(a.shape)) if k not in (*left, *left_batch)]
    others = [k for k in range(len(b.shape)) if k not in (*right, *right_batch)]

    def place(rank: int, named: Sequence[tuple[Sequence[int], Sequence[Node]]]) -> list[Node]:
        where = {axis: i for axes, index in named for axis, i in zip(axes, index)}
        return [where[axis] for axis in range(rank)]

    def tell(index: Index) -> Node:
        batch, rest = index[: len(left_batch)], index[len(left_batch) :]
        mine, theirs = rest[: len(free)], rest[len(free) :]

        def body(k: Index) -> Node:
            x = a.at(place(len(a.shape), [(left_batch, batch), (free, mine), (left, k)]))
            y = b.at(place(len(b.shape), [(right_batch, batch), (others, theirs), (right, k)]))
            return binary(g, "*", x, y)

        return over(g, "+", shape, index, body) if shape else body(())

    return view(eqn, tell)


def _cumulative(g: Graph, eqn: Any, a: Field) -> Field:
    """Sums of all entries up to each one."""
    axis, backwards = eqn.params["axis"], eqn.params["reverse"]
    op = {"cumsum": "+", "cumprod": "*", "cummax": "max", "cummin": "min"}[eqn.primitive.name]
    nothing = {"+": 0.0, "*": 1.0, "max": -float("inf"), "min": float("inf")}[op]

    def tell(index: Index) -> Node:
        def body(k: Index) -> Node:
            term = a.at((*index[:axis], *k, *index[axis + 1 :]))
            seen = compare(g, ">=" if backwards else "<=", k[0], index[axis])
            zero = nothing if a.dtype[0] == "f" or op in ("max", "min") else int(nothing)
            return select(g, seen, g.const(zero, a.dtype), term)

        return over(g, op, [a.shape[axis]], index, body)

    return view(eqn, tell)


RULES: dict[str, Callable] = {name: _reduce for name in OPS}
RULES |= {"argmax": _extreme, "argmin": _extreme, "dot_general": _dot_general}
RULES |= {name: _cumulative for name in ("cumsum", "cumprod", "cummax", "cummin")}

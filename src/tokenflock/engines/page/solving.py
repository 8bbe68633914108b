"""Sorting and linear algebra, which the page's runtime does in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokenflock.engines.page.fields import Field, dtype_of, in_memory, size, stored
from tokenflock.engines.page.graph import Graph
from tokenflock.errors import UserError


def _called(
    g: Graph, eqn: Any, name: str, arrays: Sequence[Field], options: Sequence[Any]
) -> list[Field]:
    """What a function of the runtime makes of arrays: name(inputs..., outputs..., options...)."""
    avals = [var.aval for var in eqn.outvars]
    made = [(tuple(size(g, dim) for dim in aval.shape), dtype_of(aval)) for aval in avals]
    texts = [str(option).lower() if isinstance(option, bool) else str(option) for option in options]

    def write(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        return [f"{name}({', '.join([*inputs, *outputs, *texts])});"]

    buffers = g.statement([stored(g, array) for array in arrays], write, made)
    return [in_memory(g, aval.shape, buffer) for aval, buffer in zip(avals, buffers)]


def _matrix(name: str, array: Field) -> None:
    if len(array.shape) != 2:
        raise UserError(f"the page's {name} takes a single matrix")


def _lu(g: Graph, eqn: Any, a: Field) -> list[Field]:
    _matrix("lu", a)
    return _called(g, eqn, "lu", [a], [g.text(size(g, a.shape[0]))])


def _triangular_solve(g: Graph, eqn: Any, a: Field, b: Field) -> list[Field]:
    _matrix("triangular_solve", a)
    params = eqn.params
    rows, columns = (g.text(size(g, dim)) for dim in b.shape)
    names = ("left_side", "lower", "transpose_a", "unit_diagonal")
    options = [rows, columns, *(bool(params[name]) for name in names)]
    return _called(g, eqn, "triangular_solve", [a, b], options)


def _eigh(g: Graph, eqn: Any, a: Field) -> list[Field]:
    _matrix("eigh", a)
    return _called(g, eqn, "eigh", [a], [g.text(size(g, a.shape[0]))])


def _cholesky(g: Graph, eqn: Any, a: Field) -> list[Field]:
    _matrix("cholesky", a)
    return _called(g, eqn, "cholesky", [a], [g.text(size(g, a.shape[0]))])


def _sort(g: Graph, eqn: Any, *arrays: Field) -> list[Field]:
    if eqn.params["dimension"] != len(arrays[0].shape) - 1:
        raise UserError("the page sorts along the last axis")
    length = g.text(size(g, arrays[0].shape[-1]))
    count, keys = len(arrays), eqn.params["num_keys"]
    avals = [var.aval for var in eqn.outvars]
    made = [(tuple(size(g, dim) for dim in aval.shape), dtype_of(aval)) for aval in avals]

    def write(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        return [f"sort([{', '.join(inputs)}], [{', '.join(outputs)}], {length}, {keys});"]

    buffers = g.statement([stored(g, array) for array in arrays], write, made)
    return [in_memory(g, avals[k].shape, buffers[k]) for k in range(count)]


RULES: dict[str, Callable] = {
    "lu": _lu,
    "triangular_solve": _triangular_solve,
    "eigh": _eigh,
    "cholesky": _cholesky,
    "sort": _sort,
}

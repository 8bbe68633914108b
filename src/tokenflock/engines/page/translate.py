"""Equations of JAX to expressions: each primitive by its rule, calls written out, loops kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from jax.extend.core import Literal

from tokenflock.engines.page import elementwise, keys, solving, sums, views
from tokenflock.engines.page.elementwise import compare, select
from tokenflock.engines.page.fields import (
    Field,
    Index,
    dtype_of,
    in_memory,
    known,
    size,
    stored,
)
from tokenflock.engines.page.graph import Buffer, Graph
from tokenflock.engines.page.views import dim_is_one, view
from tokenflock.errors import UserError

RULES: dict[str, Callable] = views.RULES | sums.RULES | keys.RULES | solving.RULES
CALLS = {  # primitives that call another program, and where it is among their parameters
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}


def run(g: Graph, jaxpr: Any, consts: Sequence[Any], arrays: Sequence[Field]) -> list[Field]:
    """The results of a program for the given arrays."""
    values: dict[Any, Field] = dict(zip(jaxpr.invars, arrays))
    values |= {var: _constant(g, const) for var, const in zip(jaxpr.constvars, consts)}

    def read(var: Any) -> Field:
        if isinstance(var, Literal):
            return known(g, np.asarray(var.val, cast(Any, var.aval).dtype))
        return values[var]

    for eqn in jaxpr.eqns:
        results = _equation(g, eqn, [read(var) for var in eqn.invars])
        values |= dict(zip(eqn.outvars, results))
    return [read(var) for var in jaxpr.outvars]


def _constant(g: Graph, const: Any) -> Field:
    return const if isinstance(const, Field) else known(g, const)


def closed(g: Graph, program: Any, arrays: Sequence[Field]) -> list[Field]:
    """The results of a program that carries its constants, or that has none."""
    inner = getattr(program, "jaxpr", program)
    return run(g, inner, getattr(program, "consts", ()), arrays)


def _equation(g: Graph, eqn: Any, arrays: list[Field]) -> list[Field]:
    name = eqn.primitive.name
    if name in CALLS:
        return closed(g, eqn.params[CALLS[name]], arrays)
    if name in LOOPS:
        return LOOPS[name](g, eqn, arrays)
    if name in elementwise.RULES:
        return [_each(g, eqn, elementwise.RULES[name], arrays)]
    if name in RULES:
        made = RULES[name](g, eqn, *arrays)
        return made if isinstance(made, list) else [made]
    raise UserError(f"the page cannot do the primitive {name!r} of JAX")


def _each(g: Graph, eqn: Any, rule: Callable, arrays: Sequence[Field]) -> Field:
    """A rule at each index. Axes of length one are stretched."""
    aval, zero = eqn.outvars[0].aval, g.const(0)
    dtype, shape = dtype_of(aval), aval.shape

    def part(array: Field, index: Index) -> Any:
        if not array.shape:
            return array.at(())
        return array.at(
            zero if dim_is_one(own) and not dim_is_one(dim) else i
            for i, own, dim in zip(index, array.shape, shape)
        )

    return Field(
        shape, dtype, lambda index: rule(g, eqn.params, dtype, *(part(a, index) for a in arrays))
    )


def _dim_as_value(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    return [view(eqn, lambda index: size(g, eqn.params["dim"]))]


def _linear_solve(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    lengths, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    skip = lengths.matvec + lengths.vecmat
    consts = arrays[skip : skip + lengths.solve]
    right = arrays[skip + lengths.solve + lengths.transpose_solve :]
    return closed(g, programs.solve, [*consts, *right])


def _cond(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    """All branches, of which the right one is taken."""
    which, operands = arrays[0], arrays[1:]
    branches = [closed(g, branch, operands) for branch in eqn.params["branches"]]

    def chosen(position: int) -> Callable[[Index], Any]:
        def tell(index: Index) -> Any:
            value = branches[-1][position].at(index)
            for k in reversed(range(len(branches) - 1)):
                first = compare(g, "<=", which.at(()), g.const(k))
                value = select(g, first, value, branches[k][position].at(index))
            return value

        return tell

    return [view(eqn, chosen(k), k) for k in range(len(eqn.outvars))]


def _alias(g: Graph, buffer: Buffer) -> Buffer:
    """The same memory, as it is when a loop runs."""
    return g.given(buffer.name, buffer.shape, buffer.dtype)


def _inside(g: Graph, array: Field) -> Field:
    """An array from outside as a loop reads it: from memory, unless it is a plain number."""
    if not array.shape and array.dtype not in ("u64", "key"):
        node = array.at(())
        if node.op in ("const", "name"):
            return array
    if array.dtype in ("u64", "key"):
        return array
    return in_memory(g, array.shape, _alias(g, stored(g, array)))


def _outside(arrays: Sequence[Field]) -> list[Buffer]:
    return [array.stored for array in arrays if array.stored is not None]


def _copies(new: Sequence[str], old: Sequence[str]) -> list[str]:
    """Lines that move what a turn of a loop made to where the next turn reads it."""
    moves = [(a, b) for a, b in zip(new, old) if a != b]
    late = {a for a, _ in moves if a in old}
    lines = [f"const {b}_next = {a}.slice();" for a, b in moves if a in late]
    return lines + [f"{b}.set({f'{b}_next' if a in late else a});" for a, b in moves]


def _scan(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    params = eqn.params
    consts, carries = params["num_consts"], params["num_carry"]
    if params["length"] == 1:
        return _once(g, eqn, arrays)
    fixed = [_inside(g, array) for array in arrays[:consts]]
    start, rows = list(arrays[consts : consts + carries]), arrays[consts + carries :]
    length = size(g, params["length"])
    counter = g.fresh("s")
    turn = g.name(counter, "int")
    here = turn
    if params["reverse"]:
        here = g.plus(g.plus(length, g.const(-1)), g.times(turn, g.const(-1)))
    rows = [_inside(g, array) for array in rows]
    slices = [_row(array, here) for array in rows]
    avals = [var.aval for var in eqn.outvars]
    made = [(tuple(size(g, dim) for dim in aval.shape), dtype_of(aval)) for aval in avals]
    inputs = [stored(g, array) for array in start]
    outer = [*_outside(arrays[:consts]), *_outside(arrays[consts + carries :])]

    def write(names: Sequence[str], outputs: Sequence[str]) -> list[str]:
        old, series = outputs[:carries], outputs[carries:]
        state = [
            in_memory(g, avals[k].shape, g.given(name, *made[k])) for k, name in enumerate(old)
        ]
        results = closed(g, params["jaxpr"], [*fixed, *state, *slices])
        buffers = [stored(g, array) for array in results]
        lines = g.emit(buffers)
        for name, buffer in zip(series, buffers[carries:]):
            count = " * ".join(g.text(k) for k in buffer.shape) or "1"
            cut = f"{buffer.name}.subarray(0, {count})"
            lines.append(f"{name}.set({cut}, {g.text(here)} * {count});")
        lines += _copies([buffer.name for buffer in buffers[:carries]], old)
        begin = [f"{b}.set({a}.subarray(0, {b}.length));" for a, b in zip(names, old)]
        loop = f"for (let {counter} = 0; {counter} < {g.text(length)}; {counter}++) {{"
        return [*begin, loop, *(f"  {line}" for line in lines), "}"]

    buffers = g.statement([*inputs, *outer], write, made)
    return [in_memory(g, aval.shape, buffer) for aval, buffer in zip(avals, buffers)]


def _once(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    """A loop of a single turn."""
    given = eqn.params["num_consts"] + eqn.params["num_carry"]
    rows = [_row(array, g.const(0)) for array in arrays[given:]]
    results = closed(g, eqn.params["jaxpr"], [*arrays[:given], *rows])
    carries = eqn.params["num_carry"]
    series = [
        Field((1, *array.shape), array.dtype, lambda index, array=array: array.at(index[1:]))
        for array in results[carries:]
    ]
    return [*results[:carries], *series]


def _row(array: Field, here: Any) -> Field:
    """One row of an array, at a place that a loop knows."""
    return Field(array.shape[1:], array.dtype, lambda index: array.at((here, *index)))


def _while(g: Graph, eqn: Any, arrays: Sequence[Field]) -> list[Field]:
    params = eqn.params
    tests, bodies = params["cond_nconsts"], params["body_nconsts"]
    first = [_inside(g, array) for array in arrays[:tests]]
    fixed = [_inside(g, array) for array in arrays[tests : tests + bodies]]
    avals = [var.aval for var in eqn.outvars]
    made = [(tuple(size(g, dim) for dim in aval.shape), dtype_of(aval)) for aval in avals]
    inputs = [stored(g, array) for array in arrays[tests + bodies :]]
    outer = _outside(arrays[: tests + bodies])

    def write(names: Sequence[str], outputs: Sequence[str]) -> list[str]:
        state = [
            in_memory(g, avals[k].shape, g.given(name, *made[k])) for k, name in enumerate(outputs)
        ]
        (going,) = closed(g, params["cond_jaxpr"], [*first, *state])
        any_going = sums.over(g, "||", going.shape, (), going.at) if going.shape else going.at(())
        test = stored(g, Field((), "bool", lambda index: any_going))
        results = closed(g, params["body_jaxpr"], [*fixed, *state])
        buffers = [stored(g, _where(g, going, *pair)) for pair in zip(results, state)]
        lines = [*g.emit([test]), f"if (!{test.name}[0]) break;", *g.emit(buffers)]
        lines += _copies([buffer.name for buffer in buffers], outputs)
        begin = [f"{b}.set({a}.subarray(0, {b}.length));" for a, b in zip(names, outputs)]
        return [*begin, "for (;;) {", *(f"  {line}" for line in lines), "}"]

    buffers = g.statement([*inputs, *outer], write, made)
    return [in_memory(g, aval.shape, buffer) for aval, buffer in zip(avals, buffers)]


def _where(g: Graph, going: Field, new: Field, old: Field) -> Field:
    """What a turn of a loop made, for those systems of a batch, its first axes, that go on."""
    if not going.shape:
        return new
    return Field(
        new.shape,
        new.dtype,
        lambda index: select(g, going.at(index[: len(going.shape)]), old.at(index), new.at(index)),
    )


LOOPS: dict[str, Callable] = {
    "dim_as_value": _dim_as_value,
    "custom_linear_solve": _linear_solve,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}

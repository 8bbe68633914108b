"""Arrays seen otherwise: at each index, where in the other array it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tokenflock.engines.page.elementwise import compare, logic, select
from tokenflock.engines.page.fields import Field, Index, dtype_of, in_memory, size, stored
from tokenflock.engines.page.graph import Graph, Node
from tokenflock.errors import UserError


def view(eqn: Any, tell: Callable[[Index], Any], which: int = 0) -> Field:
    """What a primitive returns, told by index."""
    aval = eqn.outvars[which].aval
    return Field(aval.shape, dtype_of(aval), tell)


def _broadcast_in_dim(g: Graph, eqn: Any, a: Field, *dynamic: Field) -> Field:
    axes, zero = eqn.params["broadcast_dimensions"], g.const(0)
    return view(
        eqn,
        lambda index: a.at(
            zero if dim_is_one(dim) else index[axis] for axis, dim in zip(axes, a.shape)
        ),
    )


def dim_is_one(dim: Any) -> bool:
    """Whether an axis has length one, for sure."""
    return isinstance(dim, int) and dim == 1


def _reshape(g: Graph, eqn: Any, a: Field, *dynamic: Field) -> Field:
    if eqn.params.get("dimensions") is not None:
        raise UserError("the page reshapes only in the order of memory")
    old, new = list(a.shape), list(eqn.outvars[0].aval.shape)
    head = 0  # axes that both begin with stay as they are
    while head < min(len(old), len(new)) and _same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and _same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    inner = [size(g, dim) for dim in old[head : len(old) - tail]]
    outer = [size(g, dim) for dim in new[head : len(new) - tail]]

    def tell(index: Index) -> Any:
        middle = index[head : len(new) - tail]
        rest = g.flat(outer, middle)
        found: list[Node] = []
        for position, length in enumerate(reversed(inner)):
            if position == len(inner) - 1:
                found.append(rest if not _one(length) else g.const(0))
            else:
                rest, i = g.divided(rest, length)
                found.append(i)
        return a.at((*index[:head], *reversed(found), *index[len(new) - tail :]))

    return view(eqn, tell)


def _one(length: Node) -> bool:
    return length.op == "const" and length.what == 1


def _same(a: Any, b: Any) -> bool:
    return str(a) == str(b)


def _squeeze(g: Graph, eqn: Any, a: Field) -> Field:
    gone = {axis % len(a.shape) for axis in eqn.params["dimensions"]}

    def tell(index: Index) -> Any:
        rest = iter(index)
        return a.at(g.const(0) if k in gone else next(rest) for k in range(len(a.shape)))

    return view(eqn, tell)


def _expand_dims(g: Graph, eqn: Any, a: Field) -> Field:
    new = set(eqn.params["dimensions"])
    return view(eqn, lambda index: a.at(i for k, i in enumerate(index) if k not in new))


def _transpose(g: Graph, eqn: Any, a: Field) -> Field:
    order = eqn.params["permutation"]
    return view(eqn, lambda index: a.at(index[order.index(k)] for k in range(len(order))))


def _slice(g: Graph, eqn: Any, a: Field) -> Field:
    starts = [size(g, k) for k in eqn.params["start_indices"]]
    strides = [size(g, k) for k in eqn.params["strides"] or [1] * len(starts)]
    return view(
        eqn,
        lambda index: a.at(
            g.plus(g.times(i, stride), start) for i, start, stride in zip(index, starts, strides)
        ),
    )


def _rev(g: Graph, eqn: Any, a: Field) -> Field:
    turned = eqn.params["dimensions"]

    def back(i: Node, dim: Any) -> Node:
        return g.plus(g.plus(size(g, dim), g.const(-1)), g.times(i, g.const(-1)))

    return view(
        eqn,
        lambda index: a.at(
            back(i, dim) if k in turned else i for k, (i, dim) in enumerate(zip(index, a.shape))
        ),
    )


def _may_hold(length: Any, place: int) -> bool:
    """Whether an axis may have a place."""
    return place >= 0 and not (isinstance(length, int) and place >= length)


def _concatenate(g: Graph, eqn: Any, *parts: Field) -> Field:
    axis = eqn.params["dimension"]
    starts = [g.const(0)]
    for part in parts:
        starts.append(g.plus(starts[-1], size(g, part.shape[axis])))

    def tell(index: Index) -> Any:
        i, value = index[axis], None
        for k in reversed(range(len(parts))):
            inside = g.plus(i, g.times(starts[k], g.const(-1)))
            if inside.op == "const" and not _may_hold(parts[k].shape[axis], inside.what):
                continue
            here = parts[k].at((*index[:axis], inside, *index[axis + 1 :]))
            value = (
                here if value is None else select(g, compare(g, "<", i, starts[k + 1]), value, here)
            )
        return value

    return view(eqn, tell)


def _stack(g: Graph, eqn: Any, *parts: Field) -> Field:
    axis = eqn.params["axis"]

    def tell(index: Index) -> Any:
        which, rest = index[axis], (*index[:axis], *index[axis + 1 :])
        if which.op == "const":
            return parts[which.what].at(rest)
        value = parts[-1].at(rest)
        for k in reversed(range(len(parts) - 1)):
            value = select(g, compare(g, "===", which, g.const(k)), value, parts[k].at(rest))
        return value

    return view(eqn, tell)


def _unstack(g: Graph, eqn: Any, a: Field) -> list[Field]:
    axis = eqn.params["axis"]

    def part(which: int) -> Field:
        k = g.const(which)
        return view(eqn, lambda index: a.at((*index[:axis], k, *index[axis:])), which)

    return [part(which) for which in range(len(eqn.outvars))]


def _tile(g: Graph, eqn: Any, a: Field) -> Field:
    lengths = [size(g, dim) for dim in a.shape]
    return view(
        eqn, lambda index: a.at(g.divided(i, length)[1] for i, length in zip(index, lengths))
    )


def _split(g: Graph, eqn: Any, a: Field) -> list[Field]:
    axis, start, parts = eqn.params["axis"], g.const(0), []
    for which, length in enumerate(eqn.params["sizes"]):

        def tell(index: Index, start: Node = start) -> Any:
            return a.at((*index[:axis], g.plus(index[axis], start), *index[axis + 1 :]))

        parts.append(view(eqn, tell, which))
        start = g.plus(start, size(g, length))
    return parts


def _pad(g: Graph, eqn: Any, a: Field, filler: Field) -> Field:
    config = eqn.params["padding_config"]
    if any(str(inner) != "0" for _, _, inner in config):
        raise UserError("the page pads only at the ends")

    def tell(index: Index) -> Any:
        inside, place = g.const(True, "bool"), []
        for i, (low, high, _), dim in zip(index, config, a.shape):
            k = g.plus(i, g.times(size(g, low), g.const(-1)))
            if str(low) != "0":
                inside = logic(g, "&", inside, compare(g, ">=", k, g.const(0)))
            if str(high) != "0":
                inside = logic(g, "&", inside, compare(g, "<", k, size(g, dim)))
            place.append(k)
        if inside.op == "const" and not inside.what:
            return filler.at(())
        return select(g, inside, filler.at(()), a.at(place))

    return view(eqn, tell)


def _iota(g: Graph, eqn: Any, *dynamic: Field) -> Field:
    axis = eqn.params["dimension"]
    dtype = dtype_of(eqn.outvars[0].aval)

    def tell(index: Index) -> Node:
        i = index[axis]
        if i.op == "const":
            return g.const(float(i.what) if dtype[0] == "f" else i.what, dtype)
        return i if dtype == "int" else g.node("to", (i,), None, dtype)

    return view(eqn, tell)


def clamped(g: Graph, start: Node, highest: Node) -> Node:
    """A start so that a slice stays inside."""
    if highest.op == "const" and highest.what == 0:
        return highest
    if start.op == "const" and (start.what == 0 or highest.op == "const"):
        return g.const(max(0, min(start.what, highest.what)) if start.what else 0)
    if start.op in ("var", "name"):  # a loop counts within
        return start
    low = g.node("max", (start, g.const(0)), None, "int")
    return g.node("min", (low, highest), None, "int")


def _dynamic_slice(g: Graph, eqn: Any, a: Field, *starts: Field) -> Field:
    lengths = eqn.params["slice_sizes"]

    def tell(index: Index) -> Any:
        place = []
        for i, start, dim, length in zip(index, starts, a.shape, lengths):
            spare = g.plus(size(g, dim), g.times(size(g, length), g.const(-1)))
            place.append(g.plus(clamped(g, _whole(g, start.at(())), spare), i))
        return a.at(place)

    return view(eqn, tell)


def _whole(g: Graph, i: Node) -> Node:
    return i if i.dtype == "int" else g.node("to", (i,), None, "int")


def _dynamic_update_slice(g: Graph, eqn: Any, a: Field, part: Field, *starts: Field) -> Field:
    def tell(index: Index) -> Any:
        inside, place = g.const(True, "bool"), []
        for i, start, dim, length in zip(index, starts, a.shape, part.shape):
            spare = g.plus(size(g, dim), g.times(size(g, length), g.const(-1)))
            begin = clamped(g, _whole(g, start.at(())), spare)
            k = g.plus(i, g.times(begin, g.const(-1)))
            if not _same(dim, length):
                end = g.plus(begin, size(g, length))
                inside = logic(g, "&", inside, compare(g, ">=", i, begin))
                inside = logic(g, "&", inside, compare(g, "<", i, end))
            place.append(k if not _one(size(g, length)) else g.const(0))
        return select(g, inside, a.at(index), part.at(place))

    return view(eqn, tell)


def _gather(g: Graph, eqn: Any, a: Field, where: Field) -> Field:
    numbers, lengths = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    mode, source = str(eqn.params["mode"]), stored(g, a)
    offset, gone = numbers.offset_dims, numbers.collapsed_slice_dims
    paired = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims))
    kept = [k for k in range(len(a.shape)) if k not in gone and k not in paired]
    fills = "FILL" in mode.upper()

    def tell(index: Index) -> Any:
        batch = [i for k, i in enumerate(index) if k not in offset]
        inside: Node = g.const(True, "bool")
        place: list[Node] = [g.const(0)] * len(a.shape)
        for k, axis in enumerate(kept):
            place[axis] = index[offset[k]]
        for axis, other in paired.items():
            place[axis] = batch[other]
        for k, axis in enumerate(numbers.start_index_map):
            start = _whole(g, where.at((*batch, g.const(k))))
            spare = g.plus(size(g, a.shape[axis]), size(g, -lengths[axis]))
            if fills and start.op != "const":
                inside = logic(g, "&", inside, compare(g, ">=", start, g.const(0)))
                inside = logic(g, "&", inside, compare(g, "<=", start, spare))
            start = start if fills else clamped(g, start, spare)
            place[axis] = g.plus(start, place[axis])
        value = g.load(source, place)
        if inside.op == "const":
            return value
        missing = {"f64": float("nan"), "f32": float("nan"), "bool": True}.get(a.dtype, -(2**31))
        return select(g, inside, g.const(missing, a.dtype), value)

    return view(eqn, tell)


CHANGES = {
    "scatter": "{0} = {1}",
    "scatter-add": "{0} += {1}",
    "scatter-mul": "{0} *= {1}",
    "scatter-min": "{0} = Math.min({0}, {1})",
    "scatter-max": "{0} = Math.max({0}, {1})",
}


def _scatter(g: Graph, eqn: Any, a: Field, where: Field, new: Field) -> Field:
    """Entries changed one after the other; those that would lie outside are left out."""
    numbers, change = eqn.params["dimension_numbers"], CHANGES[eqn.primitive.name]
    if numbers.operand_batching_dims:
        raise UserError("the page scatters no batches")
    buffers = stored(g, a), stored(g, where), stored(g, new)
    lengths = [g.text(k) for k in buffers[0].shape]
    window, order = numbers.update_window_dims, numbers.scatter_dims_to_operand_dims
    kept = [k for k in range(len(a.shape)) if k not in numbers.inserted_window_dims]
    batch = [k for k in range(len(new.shape)) if k not in window]

    def write(names: Sequence[str], made: Sequence[str]) -> list[str]:
        old, index, update = names
        loops = [
            f"for (let u{k} = 0; u{k} < {g.text(length)}; u{k}++) {{"
            for k, length in enumerate(buffers[2].shape)
        ]
        row = _row_by_row([f"u{k}" for k in batch], [g.text(buffers[2].shape[k]) for k in batch])
        inside = {axis: f"u{window[k]}" for k, axis in enumerate(kept)}
        lines = []
        for axis in range(len(lengths)):
            parts = [inside[axis]] if axis in inside else []
            if axis in order:
                parts.append(f"{index}[({row}) * {len(order)} + {order.index(axis)}]")
            lines.append(f"const o{axis} = {' + '.join(parts) or '0'};")
        tests = [f"o{k} >= 0 && o{k} < {length}" for k, length in enumerate(lengths)]
        place = _row_by_row([f"o{k}" for k in range(len(lengths))], lengths)
        there = _row_by_row([f"u{k}" for k in range(len(new.shape))], map(g.text, buffers[2].shape))
        changed = change.format(f"{made[0]}[{place}]", f"{update}[{there}]")
        body = [*lines, f"if ({' && '.join(tests) or 'true'}) {changed};"]
        return [f"{made[0]}.set({old}.subarray(0, {made[0]}.length));", *_nested(loops, body)]

    (made,) = g.statement(buffers, write, [(buffers[0].shape, a.dtype)])
    return in_memory(g, a.shape, made)


def _nested(loops: Sequence[str], body: Sequence[str]) -> list[str]:
    """Lines inside of loops."""
    if not loops:
        return ["{", *(f"  {line}" for line in body), "}"]
    inner = _nested(loops[1:], body) if len(loops) > 1 else body
    return [loops[0], *(f"  {line}" for line in inner), "}"]


def _row_by_row(index: Sequence[str], lengths: Iterable[str]) -> str:
    """The place of an index in memory."""
    place = ""
    for i, length in zip(index, lengths):
        place = f"({place}) * {length} + {i}" if place else i
    return place or "0"


RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "transpose": _transpose,
    "slice": _slice,
    "rev": _rev,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "tile": _tile,
    "split": _split,
    "pad": _pad,
    "iota": _iota,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
}
RULES |= {name: _scatter for name in CHANGES}

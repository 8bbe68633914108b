"""Arrays told by what stands at an index."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenflock.engines.page.graph import Buffer, Graph, Node
from tokenflock.errors import UserError

SMALL = 64  # numbers, up to which an array of constants is written where it is used
DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "bool": "bool",
    "int64": "int",
    "int32": "int",
    "int16": "int",
    "int8": "int",
    "uint8": "u32",
    "uint32": "u32",
    "uint64": "u64",
}

Index = tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two words of 32 bits: a random key, or a whole number of 64 bits."""

    high: Node
    low: Node


@dataclass(frozen=True, eq=False)
class Field:
    """An array: its shape, its kind of numbers, and what stands at an index."""

    shape: tuple[Any, ...]
    dtype: str
    tell: Callable[[Index], Any]
    stored: Buffer | None = None
    _told: dict[Index, Any] = field(default_factory=dict)

    def at(self, index: Iterable[Node]) -> Any:
        """What stands at an index."""
        index = tuple(index)
        if index not in self._told:
            self._told[index] = self.tell(index)
        return self._told[index]


def dtype_of(aval: Any) -> str:
    """The kind of numbers of a traced value."""
    name = str(aval.dtype)
    if name.startswith("key<fry>"):
        return "key"
    if name not in DTYPES:
        raise UserError(f"the page has no numbers of the kind {name}")
    return DTYPES[name]


def size(g: Graph, dim: Any) -> Node:
    """The length of an axis: a number, or an expression in n."""
    if isinstance(dim, (int, np.integer)):
        return g.const(int(dim))
    tree = ast.parse(str(dim).replace("^", "**"), mode="eval").body
    return _size(g, tree, str(dim))


def _size(g: Graph, tree: ast.expr, text: str) -> Node:
    match tree:
        case ast.Constant(value=int(value)):
            return g.const(value)
        case ast.Name(id="n"):
            return g.name("n", "int")
        case ast.BinOp(left=a, op=ast.Add(), right=b):
            return g.plus(_size(g, a, text), _size(g, b, text))
        case ast.BinOp(left=a, op=ast.Sub(), right=b):
            return g.plus(_size(g, a, text), g.times(_size(g, b, text), g.const(-1)))
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            return g.times(_size(g, a, text), _size(g, b, text))
        case ast.BinOp(left=a, op=ast.Pow(), right=ast.Constant(value=2)):
            return g.times(_size(g, a, text), _size(g, a, text))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return g.times(_size(g, a, text), g.const(-1))
        case ast.Call(func=ast.Name(id="floordiv"), args=[a, b]):
            return g.divided(_size(g, a, text), _size(g, b, text))[0]
        case ast.Call(func=ast.Name(id="mod"), args=[a, b]):
            return g.divided(_size(g, a, text), _size(g, b, text))[1]
        case ast.Call(func=ast.Name(id="max" | "min" as word), args=[a, b]):
            return g.node(word, (_size(g, a, text), _size(g, b, text)), None, "int")
    raise UserError(f"the page knows no axis of length {text}")


def known(g: Graph, value: np.ndarray) -> Field:
    """An array of constants."""
    value = np.asarray(value)
    dtype = DTYPES.get(str(value.dtype))
    if dtype is None:
        raise UserError(f"the page has no constants of the kind {value.dtype}")
    if dtype == "u64":
        return Field(value.shape, dtype, lambda index: _words(g, value, index))
    if value.size > SMALL:
        data = g.constants(value, dtype)
        return Field(value.shape, dtype, lambda index: g.load(data, index), data)

    def tell(index: Index) -> Node:
        if all(i.op == "const" for i in index):
            return g.const(value[tuple(i.what for i in index)].item(), dtype)
        if value.size and (value == value.flat[0]).all():
            return g.const(value.flat[0].item(), dtype)
        return g.load(g.constants(value, dtype), index)

    return Field(value.shape, dtype, tell)


def _words(g: Graph, value: np.ndarray, index: Index) -> Pair:
    if not all(i.op == "const" for i in index):
        raise UserError("the page keeps no whole numbers of 64 bits in memory")
    whole = int(value[tuple(i.what for i in index)])
    return Pair(g.const(whole >> 32, "u32"), g.const(whole & 0xFFFFFFFF, "u32"))


def given(g: Graph, name: str, shape: Sequence[Any], dtype: str) -> Field:
    """An array that is in memory, row by row."""
    sizes = tuple(size(g, dim) for dim in shape)
    buffer = g.given(name, sizes, dtype)
    return in_memory(g, tuple(shape), buffer)


def in_memory(g: Graph, shape: tuple[Any, ...], buffer: Buffer) -> Field:
    """A buffer as an array."""
    return Field(shape, buffer.dtype, lambda index: g.load(buffer, index), buffer)


def unrolled(g: Graph, dim: Any) -> bool:
    """Whether an axis is written out instead of looped over."""
    return isinstance(dim, (int, np.integer)) and int(dim) <= g.unroll


def indices(g: Graph, shape: Sequence[Any]) -> list[Index]:
    """The indices of an array: numbers on axes that are written out, loop variables on others."""
    found: list[Index] = [()]
    level = 0
    for dim in shape:
        if unrolled(g, dim):
            found = [(*index, g.const(k)) for index in found for k in range(dim)]
        else:
            var = g.var(level, size(g, dim))
            level += 1
            found = [(*index, var) for index in found]
    return found


def stored(g: Graph, array: Field) -> Buffer:
    """The array in memory."""
    if array.stored is not None:
        return array.stored
    if array.dtype in ("u64", "key"):
        raise UserError("the page keeps no random keys in memory")
    shape = tuple(size(g, dim) for dim in array.shape)
    entries = []
    for index in indices(g, array.shape):
        loops = tuple(i for i in index if i.op == "var")
        entries.append((index, g.lifted(array.at(index), loops)))
    buffer = _whole(g, entries, shape, array.dtype) or g.buffer(shape, entries, array.dtype)
    object.__setattr__(array, "stored", buffer)
    return buffer


def _whole(g: Graph, entries: Sequence, shape: Index, dtype: str) -> Buffer | None:
    """The buffer that the entries just read, all of it at its own indices."""
    buffers = {entry.what if entry.op == "load" else None for _, entry in entries}
    buffer = buffers.pop() if len(buffers) == 1 else None
    if buffer is None or buffer.shape != shape or buffer.dtype != dtype:
        return None
    own = all(entry.args[0] is g.flat(shape, index) for index, entry in entries)
    return buffer if own else None

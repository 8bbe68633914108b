"""The expressions of a page: numbers that depend on loop variables, each of them once.

An array is told by what stands at an index. So a program becomes one graph of numbers: a sum over
tokens is a node that binds a variable, and what an expression depends on says which loop it
belongs to. Equal expressions are one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

UNROLL = 16  # an axis of known length up to this is written out, longer ones become loops
CHEAP = 3  # operations, up to which a number is computed again rather than stored
COSTS = {"const": 0, "var": 0, "name": 0, "load": 0, "call": 8, "/": 4, "reduce": 50}
IDENTITY = {"+": 0, "*": 1, "max": -float("inf"), "min": float("inf"), "&&": True, "||": False}


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A number: an operation on other numbers, with what belongs to the operation.

    `free` are the loop variables that it depends on, `summed` those of them on which a sum in it
    depends: in a loop over such a variable it costs another loop.
    """

    op: str
    args: tuple[Node, ...]
    what: Any
    dtype: str
    free: frozenset[Node] = field(init=False)
    summed: frozenset[Node] = field(init=False)
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        free = frozenset().union(*(arg.free for arg in self.args))
        summed = frozenset().union(*(arg.summed for arg in self.args))
        if self.op == "var":
            free = frozenset([self])
        if self.op == "reduce":
            free -= {self.what[1]}
            summed = (summed - {self.what[1]}) | free
        cost = COSTS.get(self.op, 1) + sum(arg.cost for arg in self.args)
        for name, value in (("free", free), ("summed", summed), ("cost", min(cost, 10**6))):
            object.__setattr__(self, name, value)

    @property
    def level(self) -> int:
        """How deep the loop of a variable lies."""
        return self.what[0]

    @cached_property
    def loops(self) -> tuple[Node, ...]:
        """The variables that it depends on, the outermost first."""
        return tuple(sorted(self.free, key=lambda var: (var.level, var.what[1])))


@dataclass(frozen=True, eq=False, repr=False)
class Buffer:
    """An array in memory: its name, its sizes, and what is written at which index.

    One that is given from outside, or that a statement of its own fills, has no entries.
    """

    name: str
    shape: tuple[Node, ...]
    dtype: str
    entries: tuple[tuple[tuple[Node, ...], Node], ...] = ()
    maker: Statement | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Statement:
    """Something that fills buffers by other means than an expression at each index."""

    inputs: tuple[Buffer, ...]
    write: Callable[[Sequence[str], Sequence[str]], list[str]]  # names in, names out -> lines
    outputs: list[Buffer] = field(default_factory=list)


class Graph:
    """All expressions of one program."""

    def __init__(
        self, writer: Callable[[Graph, Sequence[Buffer]], list[str]], unroll: int = UNROLL
    ) -> None:
        self._writer = writer
        self.unroll = unroll
        self._nodes: dict[tuple, Node] = {}
        self._buffers: dict[tuple, Buffer] = {}
        self._given: dict[str, Buffer] = {}
        self._copies: dict[tuple, Node] = {}
        self.count = 0
        self.data: dict[str, tuple[str, tuple]] = {}  # arrays of constants: name -> kind, numbers
        self.allocated: dict[str, Buffer] = {}  # what the page must make room for

    def node(self, op: str, args: Iterable[Node] = (), what: Any = None, dtype: str = "f64"):
        """The node of an operation, the same one for the same operation."""
        args = tuple(args)
        if op == "const":
            key: tuple = (op, repr(what), type(what), dtype)
        else:
            key = (op, args, what, dtype)
        if key not in self._nodes:
            self._nodes[key] = Node(op, args, what, dtype)
        return self._nodes[key]

    def const(self, value: float | int | bool, dtype: str = "int") -> Node:
        """A number that is known."""
        return self.node("const", (), value, dtype)

    def name(self, text: str, dtype: str) -> Node:
        """A number that the surrounding code calls `text`."""
        return self.node("name", (), text, dtype)

    def var(self, level: int, size: Node) -> Node:
        """The variable of a loop over 0 ... size - 1, `level` loops deep."""
        return self.node("var", (), (level, size_text(size), size), "int")

    def fresh(self, letter: str) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"{letter}{self.count}"

    def given(self, name: str, shape: Sequence[Node], dtype: str) -> Buffer:
        """An array that is there already."""
        if name not in self._given:
            self._given[name] = Buffer(name, tuple(shape), dtype)
        return self._given[name]

    def constants(self, value: np.ndarray, dtype: str) -> Buffer:
        """An array of numbers that are known, the same one for the same numbers."""
        key = ("data", value.shape, dtype, value.tobytes())
        if key not in self._buffers:
            shape = tuple(self.const(k) for k in value.shape)
            self._buffers[key] = made = Buffer(self.fresh("c"), shape, dtype)
            self.data[made.name] = dtype, tuple(value.reshape(-1).tolist())
        return self._buffers[key]

    def load(self, buffer: Buffer, index: Sequence[Node]) -> Node:
        """What a buffer holds at an index."""
        flat = self.flat(buffer.shape, index)
        return self.node("load", (flat,), buffer, buffer.dtype)

    def flat(self, shape: Sequence[Node], index: Sequence[Node]) -> Node:
        """The place of an index in memory, row by row."""
        place = self.const(0)
        for size, i in zip(shape, index):
            place = self.plus(self.times(place, size), i)
        return place

    def text(self, size: Node) -> str:
        """The length of an axis as JavaScript."""
        match size.op:
            case "const" | "name":
                return str(size.what)
            case "+" | "*" | "/" | "%":
                return f"({self.text(size.args[0])} {size.op} {self.text(size.args[1])})"
            case "max" | "min" | "floor" as word:
                return f"Math.{word}({', '.join(map(self.text, size.args))})"
        raise ValueError(f"{size.op} is no length")

    def plus(self, a: Node, b: Node) -> Node:
        """a + b of whole numbers."""
        if a.op == "const" and b.op == "const":
            return self.const(a.what + b.what)
        if a.op == "const" and a.what == 0:
            return b
        if b.op == "const" and b.what == 0:
            return a
        if a.op == "const":
            return self.plus(b, a)
        if b.op == "const" and a.op == "+" and a.args[1].op == "const":
            return self.plus(a.args[0], self.const(a.args[1].what + b.what))
        return self.node("+", (a, b), None, "int")

    def times(self, a: Node, b: Node) -> Node:
        """a b of whole numbers."""
        if a.op == "const" and b.op == "const":
            return self.const(a.what * b.what)
        if a.op == "const":
            return self.times(b, a)
        if b.op == "const" and b.what in (0, 1):
            return a if b.what else b
        if b.op == "const" and a.op == "+":
            return self.plus(self.times(a.args[0], b), self.times(a.args[1], b))
        if b.op == "const" and a.op == "*" and a.args[1].op == "const":
            return self.times(a.args[0], self.const(a.args[1].what * b.what))
        return self.node("*", (a, b), None, "int")

    def divided(self, a: Node, b: Node) -> tuple[Node, Node]:
        """(a // b, a mod b) of whole numbers that are not negative."""
        if a.op == "const" and b.op == "const":
            return self.const(a.what // b.what), self.const(a.what % b.what)
        if b.op == "const" and b.what == 1:
            return a, self.const(0)
        if below(a, b):
            return self.const(0), a
        whole, rest = self._split(a, b)
        if whole is not None and below(rest, b):
            return whole, rest
        quotient = self.node("floor", (self.node("/", (a, b), None, "f64"),), None, "int")
        return quotient, self.node("%", (a, b), None, "int")

    def _split(self, a: Node, b: Node) -> tuple[Node | None, Node]:
        """a as (multiple of b) / b and the rest, where that can be seen."""
        if a is b:
            return self.const(1), self.const(0)
        if a.op == "*" and a.args[1] is b:
            return a.args[0], self.const(0)
        if a.op == "*" and a.args[0] is b:
            return a.args[1], self.const(0)
        const = b.op == "const"
        if const and a.op == "const":
            return self.const(a.what // b.what), self.const(a.what % b.what)
        if const and a.op == "*" and a.args[1].op == "const" and a.args[1].what % b.what == 0:
            return self.times(a.args[0], self.const(a.args[1].what // b.what)), self.const(0)
        if a.op == "+":
            (p, r), (q, s) = self._split(a.args[0], b), self._split(a.args[1], b)
            rest = self.plus(r, s)
            if p is None and q is None:
                return None, rest
            return self.plus(p or self.const(0), q or self.const(0)), rest
        return None, a

    def reduce(self, op: str, var: Node, body: Node) -> Node:
        """The sum (product, maximum, ...) of an expression over a variable."""
        if var not in body.free:
            if op == "+":
                size = var.what[2]
                if body.dtype in ("f64", "f32"):
                    size = self.node("to", (size,), None, body.dtype)
                return self.node("*", (body, size), None, body.dtype)
            if op != "*":
                return body
        body = self.lifted(body, (*(v for v in body.loops if v is not var), var))
        return self.node("reduce", (body,), (op, var), body.dtype)

    def lifted(self, body: Node, loops: tuple[Node, ...]) -> Node:
        """The expression with arrays in place of what loops would compute again and again: what
        depends on an inner variable but not on an outer one.
        """
        prefixes = {frozenset(loops[:k]) for k in range(len(loops) + 1)}
        done: dict[Node, Node] = {}

        def visit(node: Node) -> Node:
            if node not in done:
                done[node] = self._lift(node, visit, prefixes)
            return done[node]

        return visit(body)

    def _lift(self, node: Node, visit: Callable[[Node], Node], prefixes: set) -> Node:
        dear = node.summed or (node.cost > CHEAP if len(node.free) == 1 else node.cost > 30)
        if not node.free or not node.args:
            return node
        if node.free not in prefixes and dear and (node.summed or node.dtype != "int"):
            return self.kept(node)
        if node.free in prefixes and len(node.free) < max(map(len, prefixes)):
            return node
        if node.op == "reduce":
            return node
        return self.node(node.op, map(visit, node.args), node.what, node.dtype)

    def kept(self, node: Node) -> Node:
        """The same number read from an array that holds it for all values of its variables."""
        loops = node.loops
        outer = [self.var(k, var.what[2]) for k, var in enumerate(loops)]
        entry = self.renamed(node, dict(zip(loops, outer)))
        shape = tuple(var.what[2] for var in loops)
        return self.load(self.buffer(shape, [(tuple(outer), entry)], node.dtype), loops)

    def buffer(self, shape: Sequence[Node], entries: Sequence, dtype: str) -> Buffer:
        """The array with these entries, the same one for the same entries."""
        key = (tuple(shape), tuple(entries), dtype)
        if key not in self._buffers:
            made = Buffer(self.fresh("a"), tuple(shape), dtype, tuple(entries))
            self._buffers[key] = made
        return self._buffers[key]

    def statement(
        self,
        inputs: Sequence[Buffer],
        write: Callable[[Sequence[str], Sequence[str]], list[str]],
        made: Sequence[tuple[Sequence[Node], str]],
    ) -> list[Buffer]:
        """Buffers of the given shapes and kinds that a statement fills."""
        statement = Statement(tuple(inputs), write)
        for shape, dtype in made:
            name = self.fresh("b")
            statement.outputs.append(Buffer(name, tuple(shape), dtype, (), statement))
        return statement.outputs

    def emit(self, buffers: Sequence[Buffer]) -> list[str]:
        """The lines that fill buffers."""
        return self._writer(self, buffers)

    def allocate(self, buffer: Buffer) -> None:
        """Make room for a buffer."""
        self.allocated[buffer.name] = buffer

    def renamed(self, node: Node, names: Mapping[Node, Node]) -> Node:
        """The expression with other variables. Bound ones get the level that is then free."""
        if not (node.free & names.keys()):
            return node
        inner = {var: names[var] for var in node.free if var in names}
        key = (node, tuple(sorted(inner.items(), key=lambda pair: pair[0].what[:2])))
        if key not in self._copies:
            self._copies[key] = self._renamed(node, inner)
        return self._copies[key]

    def _renamed(self, node: Node, names: Mapping[Node, Node]) -> Node:
        if node.op == "var":
            return names[node]
        if node.op != "reduce":
            args = [self.renamed(arg, names) for arg in node.args]
            return self.node(node.op, args, node.what, node.dtype)
        op, var = node.what
        outside = [names.get(v, v) for v in node.free]
        bound = self.var(1 + max(v.level for v in outside), var.what[2])
        body = self.renamed(node.args[0], {**names, var: bound})
        return self.node("reduce", (body,), (op, bound), node.dtype)


def size_text(size: Node) -> str:
    """The size of an axis as text."""
    return str(size.what)


def below(a: Node, b: Node) -> bool:
    """Whether 0 <= a < b can be seen."""
    if a.op == "const":
        return a.what == 0 or (b.op == "const" and 0 <= a.what < b.what)
    if a.op == "var":
        return a.what[2] is b or (
            b.op == "const" and a.what[2].op == "const" and a.what[2].what <= b.what
        )
    return False

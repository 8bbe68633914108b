"""Operations that take several lines of LLVM, or a name of their own: from words to lines."""

from __future__ import annotations

from tokenflock.engines.native.words import (
    ARITHMETIC,
    BITS,
    COMPARE,
    Kind,
    arithmetic,
    comparison,
    constant,
    conversion,
    function,
)
from tokenflock.engines.page.graph import IDENTITY, Graph, Node
from tokenflock.errors import UserError


def stretched(graph: Graph, value: str, old: Kind, new: Kind, lines: list[str]) -> str:
    """A number of all systems as a vector, where one is wanted."""
    if old.lanes == new.lanes:
        return value
    word = new.text.split(" x ")[1].rstrip(">")
    if not value.startswith("%"):
        return "<" + ", ".join([f"{word} {value}"] * new.lanes) + ">"
    if old.text != word:  # a whole number of 64 bits
        name = f"%{graph.fresh('t')}"
        lines.append(f"{name} = trunc {old.text} {value} to {word}")
        value = name
    first, every = (f"%{graph.fresh('t')}" for _ in range(2))
    lines += [
        f"{first} = insertelement {new.text} poison, {word} {value}, i64 0",
        f"{every} = shufflevector {new.text} {first}, {new.text} poison,"
        f" <{new.lanes} x i32> zeroinitializer",
    ]
    return every


def operation(
    graph: Graph, node: Node, kind: Kind, kinds: list[Kind], args: list[str], name: str
) -> list[str]:
    """The lines of one operation."""
    op = node.op
    if op in COMPARE:
        return [f"{name} = {comparison(op, kinds[0], *args)}"]
    if op in ARITHMETIC or op in BITS:
        return [f"{name} = {arithmetic(op, kind, *args)}"]
    if op in ("max", "min"):
        a, b = args
        return _extreme(graph, op, kind, a, b, name)
    if op == "?":
        parts = ", ".join(f"{old.text} {arg}" for old, arg in zip(kinds, args))
        return [f"{name} = select {parts}"]
    if op == "neg":
        return [f"{name} = fneg {kind.text} {args[0]}"]
    if op in ("!", "~"):
        ones = constant(True if op == "!" else -1, kind)
        return [f"{name} = xor {kind.text} {args[0]}, {ones}"]
    if op == "to":
        return [f"{name} = {conversion(kinds[0], kind, args[0])}"]
    if op == "call" and node.what == "Number.isFinite":
        return _finite(graph, kinds[0], args[0], name)
    if op == "call" and node.what == "Math.sign":
        return _sign(graph, kind, args[0], name)
    if op == "call":
        return [f"{name} = {function(node, kind, args)}"]
    raise UserError(f"the compiled loop cannot do {op}")


def identity(node: Node) -> float | int | bool:
    """What a sum (product, maximum, ...) starts from."""
    op, ends = node.what[0], {"int": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1)}
    if node.dtype in ends and op in ("max", "min"):
        return ends[node.dtype][op == "min"]
    return IDENTITY[op]


def grown(graph: Graph, op: str, kind: Kind, total: str, term: str, name: str) -> list[str]:
    """The lines that take one more term into a sum, a product, a maximum, ..."""
    if op in ("max", "min"):
        return _extreme(graph, op, kind, term, total, name)
    return [f"{name} = {arithmetic(op, kind, total, term)}"]


def _extreme(graph: Graph, op: str, kind: Kind, a: str, b: str, name: str) -> list[str]:
    test = f"%{graph.fresh('q')}"
    which = comparison(">" if op == "max" else "<", kind, a, b)
    word = Kind("bool", kind.lanes).text
    return [
        f"{test} = {which}",
        f"{name} = select {word} {test}, {kind.text} {a}, {kind.text} {b}",
    ]


def _finite(graph: Graph, kind: Kind, a: str, name: str) -> list[str]:
    rest = f"%{graph.fresh('q')}"
    return [
        f"{rest} = fsub {kind.text} {a}, {a}",
        f"{name} = fcmp oeq {kind.text} {rest}, {constant(0, kind)}",
    ]


def _sign(graph: Graph, kind: Kind, a: str, name: str) -> list[str]:
    up, down, first = (f"%{graph.fresh('q')}" for _ in range(3))
    word = Kind("bool", kind.lanes).text
    return [
        f"{up} = fcmp ogt {kind.text} {a}, {constant(0, kind)}",
        f"{down} = fcmp olt {kind.text} {a}, {constant(0, kind)}",
        f"{first} = select {word} {down}, {kind.text} {constant(-1, kind)}, {kind.text} {a}",
        f"{name} = select {word} {up}, {kind.text} {constant(1, kind)}, {kind.text} {first}",
    ]

"""Operations as JavaScript: each expression with how tightly it binds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tokenflock.engines.page.graph import Node

Text = tuple[str, int]  # JavaScript, and how tightly its outermost operation binds
ATOM, CALL, UNARY = 20, 17, 14
BINDS = {
    "||": 3,
    "&&": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "===": 8,
    "!==": 8,
    "<": 9,
    "<=": 9,
    ">": 9,
    ">=": 9,
    "<<": 10,
    ">>>": 10,
    "+": 11,
    "-": 11,
    "*": 12,
    "/": 12,
    "%": 12,
}
LETTERS = "ijklmpqr"
ARRAYS = {
    "f64": "Float64Array",
    "f32": "Float32Array",
    "int": "Int32Array",
    "u32": "Uint32Array",
    "bool": "Uint8Array",
}


def closed(text: Text, least: int) -> str:
    """The text, in brackets where it would fall apart."""
    return text[0] if text[1] >= least else f"({text[0]})"


def number(value: Any) -> Text:
    """A constant."""
    if isinstance(value, bool):
        return str(value).lower(), ATOM
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN", ATOM
        if math.isinf(value):
            return ("Infinity", ATOM) if value > 0 else ("-Infinity", UNARY)
        if value == int(value) and abs(value) < 1e15 and not (value == 0 and str(value)[0] == "-"):
            value = int(value)
    text = repr(value)
    return text, (UNARY if text.startswith("-") else ATOM)


def variable(var: Node) -> str:
    """The letter of a loop."""
    return LETTERS[var.level] if var.level < len(LETTERS) else f"i{var.level}"


def _infix(op: str, a: Text, b: Text) -> Text:
    binds = BINDS[op]
    return f"{closed(a, binds)} {op} {closed(b, binds + 1)}", binds


def _rounded(text: Text, dtype: str) -> Text:
    """The result of an operation as a number of its kind."""
    if dtype == "f32":
        return f"Math.fround({text[0]})", CALL
    if dtype == "u32":
        return f"{closed(text, BINDS['>>>'])} >>> 0", BINDS[">>>"]
    return text


def _arithmetic(node: Node, args: Sequence[Text]) -> Text:
    if node.op == "*" and node.dtype == "u32":
        return f"Math.imul({args[0][0]}, {args[1][0]}) >>> 0", BINDS[">>>"]
    a, b = args
    if node.op == "+" and b[0].startswith("-") and b[1] == UNARY:  # a + -1 is a - 1
        return _rounded(_infix("-", a, (b[0][1:], ATOM)), node.dtype)
    return _rounded(_infix(node.op, a, b), node.dtype)


def _conversion(node: Node, args: Sequence[Text]) -> Text:
    (text,), before, after = args, node.args[0].dtype, node.dtype
    if after == "bool":
        return _infix("!==", text, ("0", ATOM))
    if before == "bool":
        return f"{closed(text, 3)} ? 1 : 0", 2
    if after == "u32":
        return f"{closed(text, BINDS['>>>'])} >>> 0", BINDS[">>>"]
    if after == "int" and before[0] == "f":
        return f"Math.trunc({text[0]})", CALL
    return (f"Math.fround({text[0]})", CALL) if after == "f32" and before != "f32" else text


def _call(node: Node, args: Sequence[Text]) -> Text:
    text = f"{node.what}({', '.join(arg[0] for arg in args)})"
    if node.dtype == "f32":
        return f"Math.fround({text})", CALL
    return text, CALL


def _function(name: str) -> Callable[[Node, Sequence[Text]], Text]:
    return lambda node, args: (f"Math.{name}({', '.join(arg[0] for arg in args)})", CALL)


def _choice(node: Node, args: Sequence[Text]) -> Text:
    test, yes, no = args
    return f"{closed(test, 3)} ? {closed(yes, 3)} : {closed(no, 2)}", 2


def _load(node: Node, args: Sequence[Text]) -> Text:
    text = f"{node.what.name}[{args[0][0]}]"
    return (f"{text} === 1", BINDS["==="]) if node.dtype == "bool" else (text, CALL)


def _unary(sign: str) -> Callable[[Node, Sequence[Text]], Text]:
    def write(node: Node, args: Sequence[Text]) -> Text:
        inner = closed(args[0], UNARY)
        if sign == "-" and inner.startswith("-"):
            inner = f"({inner})"
        return _rounded((f"{sign}{inner}", UNARY), node.dtype if sign == "~" else "f64")

    return write


WRITERS: dict[str, Callable[[Node, Sequence[Text]], Text]] = {
    **{op: _arithmetic for op in ("+", "-", "*", "/", "%", "|", "^", "&", "<<", ">>>")},
    **{
        op: (lambda node, args: _infix(node.op, *args))
        for op in ("||", "&&", "===", "!==", "<", "<=", ">", ">=")
    },
    "to": _conversion,
    "call": _call,
    "max": _function("max"),
    "min": _function("min"),
    "floor": _function("floor"),
    "trunc": _function("trunc"),
    "neg": _unary("-"),
    "!": _unary("!"),
    "~": _unary("~"),
    "?": _choice,
    "load": _load,
    "const": lambda node, args: number(node.what),
    "name": lambda node, args: (node.what, ATOM),
    "var": lambda node, args: (variable(node), ATOM),
}


def grown(op: str, total: str, term: Text, dtype: str) -> str:
    """The line that takes one more term into a sum, a product, ..."""
    if op in ("&&", "||"):
        return f"{total} = {total} {op} {closed(term, BINDS[op] + 1)};"
    if dtype in ("f32", "u32"):
        text, _ = _rounded(_infix(op, (total, ATOM), term), dtype)
        return f"{total} = {text};"
    return f"{total} {op}= {term[0]};"


def outgrown(op: str, total: str, name: str, term: Text, test: Text | None) -> list[str]:
    """The lines that take one more term, under a name, into a maximum or a minimum, where a test
    is passed. A NaN stays. A branch that is seldom taken is quicker than Math.max.
    """
    beyond = f"!({name} {'<=' if op == 'max' else '>='} {total})"
    wanted = beyond if test is None else f"{beyond} && {closed(test, BINDS['&&'])}"
    grow = f"{total} = {total} !== {total} ? {total} : {name};"
    return [f"const {name} = {term[0]};", f"if ({wanted}) {grow}"]

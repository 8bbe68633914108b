"""Numbers from numbers: what each primitive of JAX does at one index."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tokenflock.engines.page.fields import Pair
from tokenflock.engines.page.graph import Graph, Node
from tokenflock.errors import UserError

WHOLE = ("int", "u32")
MATH = {  # primitives that are functions of JavaScript's Math
    "log": "log",
    "log1p": "log1p",
    "expm1": "expm1",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "tanh": "tanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "atan2": "atan2",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "abs": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "pow": "pow",
}
OWN = {
    "exp": "exp",
    "erf_inv": "erf_inv",
    "erf": "erf",
    "erfc": "erfc",
    "round": "round_even",
}  # of the runtime
COMPARE = {
    "eq": "===",
    "ne": "!==",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lt_to": "<",
    "le_to": "<=",
}


def _single(a: Any) -> None:
    if isinstance(a, Pair):
        raise UserError("the page does not count in whole numbers of 64 bits")


def binary(g: Graph, op: str, a: Node, b: Node) -> Node:
    """a op b, written down as simply as can be seen now."""
    _single(a)
    dtype = a.dtype
    if dtype == "int" and op == "+":
        return g.plus(a, b)
    if dtype == "int" and op == "*":
        return g.times(a, b)
    if dtype == "int" and op == "-":
        return g.plus(a, g.times(b, g.const(-1)))
    if dtype in ("f64", "f32"):
        simple = _simple(op, a, b)
        if simple is not None:
            return simple
    return g.node(op, (a, b), None, dtype)


def _simple(op: str, a: Node, b: Node) -> Node | None:
    """The other number where one of two does nothing."""
    if b.op == "const" and (op, b.what) in (("+", 0.0), ("-", 0.0), ("*", 1.0), ("/", 1.0)):
        return a
    if a.op == "const" and (op, a.what) in (("+", 0.0), ("*", 1.0)):
        return b
    return None


def select(g: Graph, choice: Node, no: Any, yes: Any) -> Any:
    """`yes` where the choice holds, else `no`."""
    if isinstance(no, Pair):
        return Pair(select(g, choice, no.high, yes.high), select(g, choice, no.low, yes.low))
    if choice.op == "const":
        return yes if choice.what else no
    return yes if yes is no else g.node("?", (choice, yes, no), None, no.dtype)


def convert(g: Graph, a: Any, dtype: str) -> Any:
    """The same number in another kind."""
    if isinstance(a, Pair):
        if dtype == "u64":
            return a
        if dtype == "u32":
            return a.low
        raise UserError(f"the page turns no whole number of 64 bits into {dtype}")
    if dtype == "u64":
        low = a if a.dtype == "u32" else convert(g, a, "u32")
        return Pair(g.const(0, "u32"), low)
    if a.dtype == dtype:
        return a
    if a.op == "const":
        return g.const(_cast(a.what, dtype), dtype)
    return g.node("to", (a,), None, dtype)


def _cast(value: Any, dtype: str) -> Any:
    if dtype == "bool":
        return bool(value)
    if dtype in WHOLE:
        whole = math.trunc(value)
        return whole % 2**32 if dtype == "u32" else whole
    if dtype == "f32":
        return float(np.float32(value))
    return float(value)


def power(g: Graph, a: Node, exponent: int) -> Node:
    """a^exponent by products."""
    if exponent < 0:
        return binary(g, "/", g.const(1.0, a.dtype), power(g, a, -exponent))
    if exponent == 0:
        return g.const(_cast(1, a.dtype), a.dtype)
    half = power(g, a, exponent // 2) if exponent > 1 else None
    square = None if half is None else binary(g, "*", half, half)
    if square is None:
        return a
    return binary(g, "*", square, a) if exponent % 2 else square


def compare(g: Graph, op: str, a: Node, b: Node) -> Node:
    """Whether a op b."""
    _single(a)
    if a.op == "const" and b.op == "const":
        answers = {
            "<": a.what < b.what,
            "<=": a.what <= b.what,
            ">": a.what > b.what,
            ">=": a.what >= b.what,
            "===": a.what == b.what,
            "!==": a.what != b.what,
        }
        return g.const(answers[op], "bool")
    if op == "===" and a is b and a.dtype == "int":
        return g.const(True, "bool")
    return g.node(op, (a, b), None, "bool")


def logic(g: Graph, op: str, a: Any, b: Any) -> Any:
    """and, or, xor of truths and of bits."""
    if isinstance(a, Pair):
        return Pair(logic(g, op, a.high, b.high), logic(g, op, a.low, b.low))
    if a.dtype != "bool":
        if op == "|" and b.op == "const" and b.what == 0:
            return a
        if op == "|" and a.op == "const" and a.what == 0:
            return b
        return g.node(op, (a, b), None, a.dtype)
    if op == "^":
        return g.node("!==", (a, b), None, "bool")
    word, ends = ("&&", False) if op == "&" else ("||", True)
    for x, y in ((a, b), (b, a)):
        if x.op == "const":
            return x if x.what is ends else y
    return g.node(word, (a, b), None, "bool")


def shift(g: Graph, op: str, a: Any, by: Any) -> Any:
    """Bits moved to the left (<<) or to the right (>>>)."""
    if not isinstance(a, Pair):
        return g.node(op, (a, by), None, a.dtype)
    k = by.low.what if isinstance(by, Pair) and by.low.op == "const" else None
    if k is None:
        raise UserError("the page moves 64 bits only by numbers that are known")
    zero = g.const(0, "u32")
    if k == 0:
        return a
    if k >= 32:
        rest = g.const(k - 32, "u32")
        if op == ">>>":
            return Pair(zero, a.high if k == 32 else g.node(op, (a.high, rest), None, "u32"))
        return Pair(a.low if k == 32 else g.node(op, (a.low, rest), None, "u32"), zero)
    here, back = g.const(k, "u32"), g.const(32 - k, "u32")
    if op == ">>>":
        carry = g.node("<<", (a.high, back), None, "u32")
        low = logic(g, "|", g.node(op, (a.low, here), None, "u32"), carry)
        return Pair(g.node(op, (a.high, here), None, "u32"), low)
    carry = g.node(">>>", (a.low, back), None, "u32")
    high = logic(g, "|", g.node(op, (a.high, here), None, "u32"), carry)
    return Pair(high, g.node(op, (a.low, here), None, "u32"))


def bitcast(g: Graph, a: Any, dtype: str) -> Any:
    """The same bits read as another kind of number."""
    if isinstance(a, Pair) and dtype == "f64":
        return g.node("call", (a.high, a.low), "double_of", "f64")
    if isinstance(a, Node) and (a.dtype, dtype) == ("u32", "f32"):
        return g.node("call", (a,), "single_of", "f32")
    if isinstance(a, Node) and (a.dtype, dtype) == ("int", "u32"):
        return g.node("to", (a,), None, dtype)
    if isinstance(a, Node) and (a.dtype, dtype) == ("u32", "int"):
        signed = (g.node("to", (a,), None, dtype), g.const(0))
        return g.node("|", signed, None, dtype)  # of 32 bits: the first is the sign
    raise UserError(f"the page reads no bits as {dtype}")


def _call(name: str) -> Callable:
    def rule(g: Graph, params: dict, dtype: str, *args: Node) -> Node:
        own = "erf_inv_single" if (name, dtype) == ("erf_inv", "f32") else name
        return g.node("call", args, own, dtype)

    return rule


def _plain(op: str) -> Callable:
    return lambda g, params, dtype, a, b: binary(g, op, a, b)


def _compared(op: str) -> Callable:
    return lambda g, params, dtype, a, b: compare(g, op, a, b)


def _divide(g: Graph, params: dict, dtype: str, a: Node, b: Node) -> Node:
    if dtype not in WHOLE:
        return binary(g, "/", a, b)
    return g.node("trunc", (g.node("/", (a, b), None, "f64"),), None, dtype)


def _logistic(g: Graph, params: dict, dtype: str, a: Node) -> Node:
    rest = g.node("call", (g.node("neg", (a,), None, dtype),), "exp", dtype)
    return binary(
        g, "/", g.const(1.0, dtype), g.node("+", (g.const(1.0, dtype), rest), None, dtype)
    )


def _rsqrt(g: Graph, params: dict, dtype: str, a: Node) -> Node:
    return binary(g, "/", g.const(1.0, dtype), g.node("call", (a,), "Math.sqrt", dtype))


def _clamp(g: Graph, params: dict, dtype: str, low: Node, a: Node, high: Node) -> Node:
    return g.node("min", (g.node("max", (a, low), None, dtype), high), None, dtype)


def _select_n(g: Graph, params: dict, dtype: str, which: Node, *cases: Any) -> Any:
    if which.dtype == "bool":
        return select(g, which, *cases)
    chosen = cases[-1]
    for k, case in reversed(list(enumerate(cases[:-1]))):
        chosen = select(g, compare(g, "<=", which, g.const(k)), chosen, case)
    return chosen


def _not(g: Graph, params: dict, dtype: str, a: Node) -> Node:
    return g.node("!" if dtype == "bool" else "~", (a,), None, dtype)


def _negate(g: Graph, params: dict, dtype: str, a: Node) -> Node:
    return g.times(a, g.const(-1)) if dtype == "int" else g.node("neg", (a,), None, dtype)


def _convert(g: Graph, params: dict, dtype: str, a: Any) -> Any:
    return convert(g, a, dtype)


RULES: dict[str, Callable] = {
    "add": _plain("+"),
    "add_any": _plain("+"),
    "sub": _plain("-"),
    "mul": _plain("*"),
    "rem": _plain("%"),
    "max": lambda g, params, dtype, a, b: g.node("max", (a, b), None, dtype),
    "min": lambda g, params, dtype, a, b: g.node("min", (a, b), None, dtype),
    "div": _divide,
    "neg": _negate,
    "not": _not,
    "logistic": _logistic,
    "rsqrt": _rsqrt,
    "exp2": lambda g, params, dtype, a: g.node("call", (g.const(2.0, dtype), a), "Math.pow", dtype),
    "square": lambda g, params, dtype, a: binary(g, "*", a, a),
    "integer_pow": lambda g, params, dtype, a: power(g, a, params["y"]),
    "clamp": _clamp,
    "select_n": _select_n,
    "convert_element_type": _convert,
    "bitcast_convert_type": lambda g, params, dtype, a: bitcast(g, a, dtype),
    "and": lambda g, params, dtype, a, b: logic(g, "&", a, b),
    "or": lambda g, params, dtype, a, b: logic(g, "|", a, b),
    "xor": lambda g, params, dtype, a, b: logic(g, "^", a, b),
    "shift_left": lambda g, params, dtype, a, b: shift(g, "<<", a, b),
    "shift_right_logical": lambda g, params, dtype, a, b: shift(g, ">>>", a, b),
    "is_finite": lambda g, params, dtype, a: g.node("call", (a,), "Number.isFinite", "bool"),
    "stop_gradient": lambda g, params, dtype, a: a,
    "copy": lambda g, params, dtype, a: a,
    "copy_p": lambda g, params, dtype, a: a,
    "reduce_precision": lambda g, params, dtype, a: a,
    "optimization_barrier": lambda g, params, dtype, a: a,
}
RULES |= {name: _call(f"Math.{word}") for name, word in MATH.items()}
RULES |= {name: _call(word) for name, word in OWN.items()}
RULES |= {name: _compared(op) for name, op in COMPARE.items()}

"""Operations as LLVM: one line for each, on a number that all systems share or on a vector of one
number for each system.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from tokenflock.engines.page.graph import Node
from tokenflock.errors import UserError

SCALARS = {"f32": "float", "int": "i64", "u32": "i32", "bool": "i1"}
LANED = {"f32": "float", "int": "i32", "u32": "i32", "bool": "i1"}  # in a vector, or in memory
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem"}
BITS = {"|": "or", "&": "and", "^": "xor", "<<": "shl", ">>>": "lshr", "||": "or", "&&": "and"}
COMPARE = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "===": "eq", "!==": "ne"}
INTRINSICS = {"Math.sqrt": "sqrt", "Math.abs": "fabs", "Math.floor": "floor", "Math.ceil": "ceil"}
OWN = {"exp": "flock.exp", "Math.log": "flock.log"}  # of the runtime
LIBRARY = {  # functions of the C library, lane by lane
    **{f"Math.{name}": f"{name}f" for name in ("sin", "cos", "tan", "tanh", "sinh", "cosh")},
    **{f"Math.{name}": f"{name}f" for name in ("asin", "acos", "atan", "expm1", "log1p", "cbrt")},
    "erf": "erff",
    "erfc": "erfcf",
}
FUSE = "contract nsz"  # a b + c may be one instruction


@dataclass(frozen=True)
class Kind:
    """The kind of a number, and of how many systems at once."""

    dtype: str
    lanes: int  # 1: the same number for all systems

    @property
    def text(self) -> str:
        """Its type in a register."""
        if self.lanes == 1:
            return SCALARS[self.dtype]
        return f"<{self.lanes} x {LANED[self.dtype]}>"

    @property
    def kept(self) -> str:
        """Its type in memory."""
        word = "i32" if self.dtype == "bool" else LANED[self.dtype]
        return word if self.lanes == 1 else f"<{self.lanes} x {word}>"

    @property
    def real(self) -> bool:
        """Whether it is no whole number and no truth."""
        return self.dtype == "f32"


def constant(value: Any, kind: Kind) -> str:
    """A number that is known."""
    if kind.real:
        (single,) = struct.unpack("f", struct.pack("f", value))
        text = f"0x{struct.unpack('Q', struct.pack('d', single))[0]:016X}"
    else:
        text = str(int(value)) if kind.dtype != "bool" else str(bool(value)).lower()
    if kind.lanes == 1:
        return text
    word = LANED[kind.dtype]
    return "<" + ", ".join([f"{word} {text}"] * kind.lanes) + ">"


def arithmetic(op: str, kind: Kind, a: str, b: str) -> str:
    """a op b."""
    if op in BITS:
        return f"{BITS[op]} {kind.text} {a}, {b}"
    word = ARITHMETIC[op]
    if kind.real:
        return f"f{word} {FUSE} {kind.text} {a}, {b}"
    sign = ("u" if kind.dtype == "u32" else "s") if op in "/%" else ""
    return f"{sign}{word} {kind.text} {a}, {b}"


def comparison(op: str, kind: Kind, a: str, b: str) -> str:
    """Whether a op b."""
    word = COMPARE[op]
    if kind.real:
        return f"fcmp {'une' if word == 'ne' else f'o{word}'} {kind.text} {a}, {b}"
    sign = "u" if kind.dtype in ("u32", "bool") else "s"
    return f"icmp {word if word in ('eq', 'ne') else sign + word} {kind.text} {a}, {b}"


def conversion(old: Kind, new: Kind, a: str) -> str:
    """The same number in another kind, of as many lanes."""
    if new.dtype == "bool":
        zero = constant(0, old)
        if old.real:
            return f"fcmp une {old.text} {a}, {zero}"
        return f"icmp ne {old.text} {a}, {zero}"
    if new.real:
        word = "uitofp" if old.dtype in ("u32", "bool") else "sitofp"
        return f"{word} {old.text} {a} to {new.text}"
    if old.real:
        return f"{'fptoui' if new.dtype == 'u32' else 'fptosi'} {old.text} {a} to {new.text}"
    sizes = {"i1": 1, "i32": 32, "i64": 64}
    before, after = (
        sizes[(SCALARS if kind.lanes == 1 else LANED)[kind.dtype]] for kind in (old, new)
    )
    if before == after:
        return f"or {new.text} {a}, {constant(0, new)}"
    word = "trunc" if before > after else "zext" if old.dtype in ("u32", "bool") else "sext"
    return f"{word} {old.text} {a} to {new.text}"


def function(node: Node, kind: Kind, args: list[str]) -> str:
    """A call of a function."""
    name, lanes = node.what, "" if kind.lanes == 1 else f".v{kind.lanes}"
    inner = ", ".join(f"{kind.text} {arg}" for arg in args)
    if name in INTRINSICS:
        return f"call {FUSE} {kind.text} @llvm.{INTRINSICS[name]}{lanes or '.'}f32({inner})"
    if name in OWN or name in LIBRARY:
        own = OWN.get(name) or f"flock.{LIBRARY[name]}"
        return f"call {kind.text} @{own}{lanes}({inner})"
    raise UserError(f"the compiled loop has no function {name.removeprefix('Math.')}")

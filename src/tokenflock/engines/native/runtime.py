"""What every compiled loop may call: exponentials and logarithms of vectors, and the functions of
the C library lane by lane.
"""

from __future__ import annotations

import re

from tokenflock.engines.native.words import LIBRARY, Kind, constant

LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860677e-6
EXP = (1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0)
LOG = (  # Cephes: of 1 + f, the part f^3 (...), where f lies between sqrt(1/2) - 1 and sqrt(2) - 1
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
MAGIC = 1.5 * 2.0**23  # added to a small number, it leaves the nearest integer in the last bits


class _Writer:
    """Lines of a function of one number or vector."""

    def __init__(self, name: str, lanes: int) -> None:
        self.real, self.word = Kind("f32", lanes), Kind("u32", lanes)
        self.truth = Kind("bool", lanes)
        suffix = "" if lanes == 1 else f".v{lanes}"
        self.head = f"define private {self.real.text} @{name}{suffix}({self.real.text} %x)"
        self.lines: list[str] = []

    def say(self, text: str) -> str:
        name = f"%m{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, value: float) -> str:
        return constant(value, self.real)

    def do(self, word: str, a: str, b: str) -> str:
        return self.say(f"{word} contract {self.real.text} {a}, {b}")

    def polynomial(self, f: str, terms: tuple[float, ...]) -> str:
        total = self.number(terms[0])
        for term in terms[1:]:
            total = self.do("fadd", self.do("fmul", total, f), self.number(term))
        return total

    def where(self, test: str, yes: str, no: str) -> str:
        kinds = self.truth.text, self.real.text
        return self.say(f"select {kinds[0]} {test}, {kinds[1]} {yes}, {kinds[1]} {no}")

    def test(self, word: str, a: str, b: str) -> str:
        return self.say(f"fcmp {word} {self.real.text} {a}, {b}")

    def bits(self, word: str, a: str, value: int) -> str:
        return self.say(f"{word} {self.word.text} {a}, {constant(value, self.word)}")

    def cast(self, a: str, old: Kind, new: Kind, word: str = "bitcast") -> str:
        return self.say(f"{word} {old.text} {a} to {new.text}")

    def end(self, value: str) -> str:
        body = "\n".join(self.lines)
        return f"{self.head} alwaysinline nounwind {{\n{body}\nret {self.real.text} {value}\n}}\n"


def _exp(lanes: int) -> str:
    """e^x to rounding: 2^k times a polynomial of what is left of x."""
    w = _Writer("flock.exp", lanes)
    low, high = w.number(-87.0), w.number(89.0)
    small = w.test("olt", "%x", low)
    x = w.where(small, low, "%x")
    x = w.where(w.test("ogt", x, high), high, x)
    shifted = w.do("fadd", w.do("fmul", x, w.number(1.4426950408889634)), w.number(MAGIC))
    k = w.say(f"fsub {w.real.text} {shifted}, {w.number(MAGIC)}")
    f = w.do("fsub", x, w.do("fmul", k, w.number(LN2_HIGH)))
    f = w.do("fsub", f, w.do("fmul", k, w.number(LN2_LOW)))
    p = w.polynomial(f, EXP)
    raised = w.bits("add", w.cast(shifted, w.real, w.word), 126)  # 2^(k - 1), so that k = 128 fits
    power = w.cast(w.bits("shl", raised, 23), w.word, w.real)
    value = w.do("fmul", w.do("fmul", p, power), w.number(2.0))
    return w.end(w.where(small, w.number(0.0), value))


def _log(lanes: int) -> str:
    """log x to rounding, by the exponent of x and a polynomial of the rest."""
    w = _Writer("flock.log", lanes)
    tiny = w.test("olt", "%x", w.number(2.0**-126))
    x = w.where(tiny, w.do("fmul", "%x", w.number(2.0**25)), "%x")
    bits = w.bits("sub", w.cast(x, w.real, w.word), 0x3F3504F3)  # sqrt(1/2)
    raised = w.bits("ashr", bits, 23)
    k = w.cast(raised, w.word, w.real, "sitofp")
    k = w.do("fsub", k, w.where(tiny, w.number(25.0), w.number(0.0)))
    rest = w.bits("add", w.bits("and", bits, 0x007FFFFF), 0x3F3504F3)
    f = w.do("fsub", w.cast(rest, w.word, w.real), w.number(1.0))
    square = w.do("fmul", f, f)
    tail = w.do("fmul", w.do("fmul", w.polynomial(f, LOG), f), square)
    tail = w.do("fadd", tail, w.do("fmul", k, w.number(-2.12194440e-4)))
    tail = w.do("fsub", tail, w.do("fmul", square, w.number(0.5)))
    value = w.do("fadd", w.do("fadd", f, tail), w.do("fmul", k, w.number(0.693359375)))
    value = w.where(w.test("olt", "%x", w.number(float("inf"))), value, "%x")  # and NaN
    value = w.where(w.test("oeq", "%x", w.number(0.0)), w.number(-float("inf")), value)
    return w.end(w.where(w.test("olt", "%x", w.number(0.0)), w.number(float("nan")), value))


def _library(name: str, lanes: int) -> str:
    """A function of the C library, lane by lane."""
    w = _Writer(f"flock.{name}", lanes)
    if lanes == 1:
        return w.end(w.say(f"call float @{name}(float %x)"))
    made = "poison"
    for k in range(lanes):
        lane = w.say(f"extractelement {w.real.text} %x, i64 {k}")
        lane = w.say(f"call float @{name}(float {lane})")
        made = w.say(f"insertelement {w.real.text} {made}, float {lane}, i64 {k}")
    return w.end(made)


def pieces(body: str, lanes: int) -> str:
    """The functions that a text calls."""
    called = set(re.findall(r"@((?:flock|llvm)\.[\w.]+)\(", body))
    made = {"flock.exp": _exp, "flock.log": _log}
    texts, declared = [], set()
    for full in sorted(called):
        name = full.removesuffix(f".v{lanes}")
        count = lanes if full != name else 1
        if full.startswith("llvm."):
            declared.add(_intrinsic(full, lanes))
        elif name in made:
            texts.append(made[name](count))
        else:
            plain = name.removeprefix("flock.")
            if plain not in LIBRARY.values():
                raise ValueError(f"nothing is called {full}")
            texts.append(_library(plain, count))
            declared.add(f"declare float @{plain}(float)")
    return "\n".join([*sorted(declared), *texts])


def _intrinsic(full: str, lanes: int) -> str:
    if full == "llvm.memcpy.p0.p0.i64":
        return "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    kind = Kind("f32", lanes if f".v{lanes}f32" in full else 1).text
    return f"declare {kind} @{full}({kind})"

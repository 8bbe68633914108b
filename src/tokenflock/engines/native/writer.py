"""A function of LLVM as it is written: loops, vectors of single precision, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

REAL, WORD, WHOLE, PLACE = ir.FloatType(), ir.IntType(32), ir.IntType(64), ir.PointerType()
FUSE = ("contract", "nsz")  # a b + c may be one instruction
MAGIC = 1.5 * 2.0**23 + 127  # leaves the nearest integer, plus 127, in the last bits
POWERS = (  # 2^f for |f| <= 1/2, to rounding
    1.326472763e-3,
    9.671512646e-3,
    5.550733742e-2,
    2.402224209e-1,
    6.931469776e-1,
    1.0,
)


class Writer:
    """Writes the body of a function; a vector has so many `lanes`."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        kinds: Sequence[ir.Type],
        lanes: int,
        returns: ir.Type | None = None,
    ) -> None:
        self.module, self.lanes = module, lanes
        self.vector, self.words = ir.VectorType(REAL, lanes), ir.VectorType(WORD, lanes)
        kind = ir.FunctionType(returns or ir.VoidType(), kinds)
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "internal" if returns is None else "external"
        self.function.attributes.add("nounwind")
        self.build = ir.IRBuilder(self.function.append_basic_block("entry"))

    @property
    def args(self) -> tuple[Any, ...]:
        """What the function is given."""
        return self.function.args

    def whole(self, value: Any) -> Any:
        """A whole number."""
        return WHOLE(value) if isinstance(value, int) else value

    def plus(self, a: Any, b: Any) -> Any:
        """a + b of whole numbers."""
        return self.build.add(self.whole(a), self.whole(b))

    def times(self, a: Any, b: Any) -> Any:
        """a b of whole numbers."""
        return self.build.mul(self.whole(a), self.whole(b))

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of two whole numbers."""
        a, b = self.whole(a), self.whole(b)
        return self.build.select(self.build.icmp_signed("<", a, b), a, b)

    def up(self, a: Any, unit: int) -> Any:
        """The least multiple of a unit that is not below a."""
        build = self.build
        return self.times(build.sdiv(self.plus(a, unit - 1), WHOLE(unit)), unit)

    def at(self, base: Any, place: Any, kind: ir.Type = REAL) -> Any:
        """The address of an entry of an array."""
        return self.build.gep(base, [self.whole(place)], source_etype=kind)

    def load(self, base: Any, place: Any) -> Any:
        """The vector that begins at an entry."""
        return self.build.load(self.at(base, place), align=4, typ=self.vector)

    def store(self, value: Any, base: Any, place: Any) -> None:
        """Write a number or a vector."""
        self.build.store(value, self.at(base, place), align=4)

    def number(self, base: Any, place: Any) -> Any:
        """One number of an array."""
        return self.build.load(self.at(base, place), align=4, typ=REAL)

    def every(self, number: Any) -> Any:
        """A number in every lane."""
        if isinstance(number, (int, float)):
            return ir.Constant(self.vector, [REAL(number)] * self.lanes)
        first = self.build.insert_element(ir.Constant(self.vector, ir.Undefined), number, WORD(0))
        zeros = ir.Constant(self.words, [0] * self.lanes)
        return self.build.shuffle_vector(first, ir.Constant(self.vector, ir.Undefined), zeros)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c."""
        build: Any = self.build
        return build.fadd(build.fmul(a, b, flags=FUSE), c, flags=FUSE)

    def larger(self, a: Any, b: Any) -> Any:
        """The larger of two, b where that is no number."""
        return self.build.select(self.build.fcmp_ordered(">", a, b), a, b)

    def total(self, vector: Any, word: str = "fadd") -> Any:
        """The sum (or the largest, `fmax`) of the lanes."""
        start = [REAL(0.0)] if word == "fadd" else []
        name = f"llvm.vector.reduce.{word}.v{self.lanes}f32"
        kind = ir.FunctionType(REAL, [value.type for value in start] + [self.vector])
        call = self.declared(name, kind)
        return self.build.call(call, [*start, vector], fastmath=("reassoc", "nsz"))

    def transposed(self, square: Sequence[Any]) -> list[Any]:
        """As many vectors as lanes, rows and columns exchanged."""
        lines, width = list(square), 1
        while width < self.lanes:
            for r in (r for r in range(self.lanes) if not r & width):
                a, b = lines[r], lines[r + width]
                first = [self.lanes + i - width if i & width else i for i in range(self.lanes)]
                second = [self.lanes + i if i & width else i + width for i in range(self.lanes)]
                lines[r], lines[r + width] = (
                    self.build.shuffle_vector(a, b, ir.Constant(self.words, mask))
                    for mask in (first, second)
                )
            width *= 2
        return lines

    def declared(self, name: str, kind: ir.FunctionType) -> Any:
        """A function that others have written."""
        return self.module.globals.get(name) or ir.Function(self.module, kind, name)

    def power(self, y: Any) -> Any:
        """2^y of each lane: a polynomial of what is left of y, and the exponent bits; 2^-126 below
        -126, infinite from 127.5 on.
        """
        build, magic = self.build, self.every(MAGIC)
        for sign, end in ((">", self.every(-126.0)), ("<", self.every(128.0))):
            y = build.select(build.fcmp_ordered(sign, end, y), end, y)  # no number stays one
        shifted = build.fadd(y, magic)
        f = build.fsub(y, build.fsub(shifted, magic))
        p = self.every(POWERS[0])
        for term in POWERS[1:]:
            p = self.fma(p, f, self.every(term))
        bits = build.shl(
            build.bitcast(shifted, self.words), ir.Constant(self.words, [23] * self.lanes)
        )
        return build.fmul(p, build.bitcast(bits, self.vector))

    @contextmanager
    def loop(self, stop: Any, step: Any = 1, start: Any = 0) -> Iterator[Any]:
        """Do what follows for start, start + step, ... below stop."""
        with self.sums(stop, [], step, start) as (i, _, _):
            yield i

    @contextmanager
    def sums(
        self, stop: Any, begin: Sequence[Any], step: Any = 1, start: Any = 0
    ) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """A loop that carries numbers in registers: (i, what they are, the list to put them in);
        after the loop that list holds what they came to.
        """
        build, stop = self.build, self.whole(stop)
        before = build.block
        head, body, after = (self.function.append_basic_block(name) for name in "hba")
        build.branch(head)
        build.position_at_end(head)
        i = build.phi(WHOLE)
        i.add_incoming(self.whole(start), before)
        now = [build.phi(value.type) for value in begin]
        for phi, value in zip(now, begin):
            phi.add_incoming(value, before)
        build.cbranch(build.icmp_signed("<", i, stop), body, after)
        build.position_at_end(body)
        new: list[Any] = []
        yield i, list(now), new
        i.add_incoming(self.plus(i, step), build.block)
        for phi, value in zip(now, new):
            phi.add_incoming(value, build.block)
        build.branch(head)
        build.position_at_end(after)
        new[:] = now

    def call(self, function: Any, *args: Any) -> None:
        """Call a function with whole numbers, places and numbers."""
        self.build.call(function, [self.whole(arg) for arg in args])

    def end(self) -> Any:
        """The function, written."""
        self.build.ret_void()
        return self.function

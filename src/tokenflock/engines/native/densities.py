"""The loop of phase diagrams, written by hand: self-attention and unnormalised attention under the
layer map with the pair density, a system in each lane of a vector.

Each pair of tokens costs one exponential, not two; a group of systems whose pairs have all met is
done. An array of vectors has one vector for each number; the matrix E of all pairs of a group stays
in the cache. Products are made in tiles of sums that fit into the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from tokenflock.engines.native.writer import PLACE, REAL, WHOLE, Writer

ROWS = 4  # of a tile
TINY = 2.0**-126


def columns(lanes: int) -> int:
    """Columns of a tile: 16 sums for 32 registers, 8 for 16."""
    return 4 if lanes == 16 else 2


@cache
def text(lanes: int) -> str:
    """The function `densities` and all that it calls."""
    module = ir.Module()
    _Loop(module, lanes).densities()
    return str(module)


class _Vectors(Writer):
    """A writer whose arrays are counted in vectors."""

    def vector_at(self, base: Any, place: Any) -> Any:
        """Vector number `place` of an array."""
        return self.load(base, self.times(place, self.lanes))

    def put(self, value: Any, base: Any, place: Any) -> None:
        """Write vector number `place` of an array."""
        self.store(value, base, self.times(place, self.lanes))

    def minus(self, a: Any, b: Any) -> Any:
        """a - b of whole numbers."""
        return self.build.sub(self.whole(a), self.whole(b))

    def index(self, row: Any, width: Any, column: Any) -> Any:
        """row width + column."""
        return self.plus(self.times(row, width), column)


class _Loop:
    """The functions of the loop."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.module, self.lanes, self.columns = module, lanes, columns(lanes)

    def writer(self, name: str, kinds: Sequence[ir.Type], external: bool = False) -> _Vectors:
        w = _Vectors(self.module, name, kinds, self.lanes)
        if external:
            w.function.linkage = "external"
        return w

    def tile(
        self, w: _Vectors, shape: tuple[int, int], count: Any, a: Callable, b: Callable
    ) -> list[Any]:
        """sum_k a(r, k) b(c, k) for all rows r and columns c of a tile."""
        rows, across = shape
        with w.sums(count, [w.every(0.0)] * (rows * across)) as (k, sums, new):
            right = [b(c, k) for c in range(across)]
            for r in range(rows):
                left = a(r, k)
                new += [w.fma(left, right[c], sums[r * across + c]) for c in range(across)]
        return new

    def cosines(self) -> Any:
        """E_ij = <x_i, x_j> for a block of rows i and all j before them and among them."""
        w = self.writer("cosines", [PLACE, PLACE, WHOLE, WHOLE, WHOLE])
        X, E, i, tall, d = w.args
        with w.loop(w.plus(i, ROWS), self.columns) as j:

            def token(first: Any) -> Callable[[int, Any], Any]:
                return lambda r, k: w.vector_at(X, w.index(w.plus(first, r), d, k))

            tile = self.tile(w, (ROWS, self.columns), d, token(i), token(j))
            for at, value in enumerate(tile):
                r, c = divmod(at, self.columns)
                w.put(value, E, w.index(w.plus(i, r), tall, w.plus(j, c)))
        return w.end()

    def meetings(self) -> Any:
        """met += 2 w_i w_j for all j < i whose cosine is at least `least`."""
        w = self.writer("meetings", [PLACE, PLACE, WHOLE, WHOLE, PLACE, PLACE])
        E, weights, i, tall, numbers, met = w.args
        least, twice = w.vector_at(numbers, 3), w.build.fmul(REAL(2.0), w.number(weights, i))
        with w.sums(i, [w.vector_at(met, 0)]) as (j, (so_far,), new):
            c = w.vector_at(E, w.index(i, tall, j))
            both = w.every(w.build.fmul(twice, w.number(weights, j)))
            there = w.build.fcmp_ordered(">=", c, least)
            near = w.build.select(there, both, w.every(0.0))
            # a cosine that is not a number stays to be seen
            near = w.build.fadd(near, w.build.fmul(w.every(0.0), c))
            new.append(w.build.fadd(so_far, near))
        w.put(new[0], met, 0)
        return w.end()

    def kernel(self) -> Any:
        """E_ij = E_ji = 2^(slope E_ij + offset) for all j <= i."""
        w = self.writer("kernel", [PLACE, WHOLE, WHOLE, PLACE])
        E, i, tall, numbers = w.args
        slope, offset = (w.vector_at(numbers, k) for k in range(2))
        with w.loop(w.plus(i, 1)) as j:
            here = w.index(i, tall, j)
            e = w.power(w.fma(w.vector_at(E, here), slope, offset))
            w.put(e, E, here)
            w.put(e, E, w.index(j, tall, i))
        return w.end()

    def mixtures(self) -> Any:
        """M_rk = sum_j E_(i+r)j V_jk for a block of rows and all columns k, one for the sum of the
        weights among them.
        """
        w = self.writer("mixtures", [PLACE, PLACE, PLACE, WHOLE, WHOLE, WHOLE, WHOLE])
        E, V, M, i, tall, count, wide = w.args

        def across(some: int, k: Any) -> None:
            tile = self.tile(
                w,
                (ROWS, some),
                count,
                lambda r, j: w.vector_at(E, w.index(w.plus(i, r), tall, j)),
                lambda c, j: w.vector_at(V, w.index(j, wide, w.plus(k, c))),
            )
            for at, value in enumerate(tile):
                r, c = divmod(at, some)
                w.put(value, M, w.index(r, wide, w.plus(k, c)))

        first: Any = WHOLE(0)
        for some in [self.columns, *((2,) if self.columns > 2 else ()), 1]:
            left = w.minus(wide, first)
            last = w.minus(wide, w.build.srem(left, WHOLE(some)))
            with w.loop(last, some, first) as k:
                across(some, k)
            first = last
        return w.end()

    def move(self) -> Any:
        """x_i <- normalize(x_i + h M_r / Z_r); Z_r is the last column of M."""
        w = self.writer("move", [PLACE, PLACE, WHOLE, WHOLE, WHOLE, PLACE, WHOLE])
        X, M, i, r, d, numbers, normalised = w.args
        build, wide, h = w.build, w.plus(d, 1), w.vector_at(numbers, 2)
        Z = w.vector_at(M, w.index(r, wide, d))
        divided = build.icmp_signed("!=", normalised, WHOLE(0))
        scale = build.fdiv(h, build.select(divided, Z, w.every(1.0)))
        with w.sums(d, [w.every(0.0)]) as (k, (square,), new):
            y = w.fma(scale, w.vector_at(M, w.index(r, wide, k)), w.vector_at(X, w.index(i, d, k)))
            w.put(y, X, w.index(i, d, k))
            new.append(w.fma(y, y, square))
        name = f"llvm.sqrt.v{self.lanes}f32"
        root = build.call(w.declared(name, ir.FunctionType(w.vector, [w.vector])), [new[0]])
        enough = build.fcmp_ordered(">=", new[0], w.every(TINY))
        # not a number if the square is infinite
        inverse = build.select(enough, build.fdiv(root, new[0]), w.every(1.0))
        with w.loop(d) as k:
            place = w.index(i, d, k)
            w.put(build.fmul(w.vector_at(X, place), inverse), X, place)
        return w.end()

    def weigh(self) -> Any:
        """V_j = w_j (x_j, 1)."""
        w = self.writer("weigh", [PLACE, PLACE, PLACE, WHOLE, WHOLE])
        X, V, weights, count, d = w.args
        wide = w.plus(d, 1)
        with w.loop(count) as j:
            weight = w.every(w.number(weights, j))
            with w.loop(d) as k:
                value = w.build.fmul(weight, w.vector_at(X, w.index(j, d, k)))
                w.put(value, V, w.index(j, wide, k))
            w.put(weight, V, w.index(j, wide, d))
        return w.end()

    def look(self) -> Any:
        """The cosines of all pairs become weights; met += the pairs that met, where `looks`."""
        w = self.writer("look", [PLACE] * 3 + [WHOLE] * 4 + [PLACE] * 2)
        X, E, weights, count, tall, d, looks, numbers, met = w.args
        cosines, meetings, kernel = self.cosines(), self.meetings(), self.kernel()
        asked = w.build.icmp_signed("!=", looks, WHOLE(0))
        w.put(w.every(0.0), met, 0)
        with w.loop(tall, ROWS) as i:
            w.call(cosines, X, E, i, tall, d)
            with w.loop(w.least(w.plus(i, ROWS), count), 1, i) as r:
                with w.build.if_then(asked):
                    w.call(meetings, E, weights, r, tall, numbers, met)
                w.call(kernel, E, r, tall, numbers)
        return w.end()

    def pairs(self) -> Any:
        """total += sum of 2 w_i w_j over j < i."""
        w = self.writer("pairs", [PLACE, WHOLE, PLACE])
        weights, count, total = w.args
        w.store(REAL(0.0), total, 0)
        with w.loop(count) as i, w.loop(i) as j:
            both = w.build.fmul(w.number(weights, i), w.number(weights, j))
            both = w.build.fmul(REAL(2.0), both)
            w.store(w.build.fadd(w.number(total, 0), both), total, 0)
        return w.end()

    def densities(self) -> None:
        """Pair densities of one group of systems at the given steps.

        X and the arrays V, E, M are worked upon; `numbers` of the systems are (slope, offset, h,
        least); `scratch` has room for two vectors.
        """
        look, pairs, weigh = self.look(), self.pairs(), self.weigh()
        mixtures, move = self.mixtures(), self.move()
        w = self.writer("densities", [PLACE] * 9 + [WHOLE] * 5, external=True)
        X, V, E, M, weights, numbers, steps, told, scratch = w.args[:9]
        frames, count, d, normalised, settle = w.args[9:]
        build, tall, wide = w.build, w.up(count, ROWS), w.plus(d, 1)
        total = w.at(scratch, self.lanes)
        w.call(pairs, weights, count, total)

        def step_of(frame: Any) -> Any:
            return build.load(w.at(steps, frame, WHOLE), typ=WHOLE)

        last = step_of(w.minus(frames, 1))
        with w.sums(w.plus(last, 1), [WHOLE(0)]) as (step, (frame,), new):
            looks = build.zext(build.icmp_signed("==", step, step_of(frame)), WHOLE)
            w.call(look, X, E, weights, count, tall, d, looks, numbers, scratch)
            with build.if_then(build.icmp_signed("!=", looks, WHOLE(0))):
                self._tell(w, frame, frames, total, told, scratch, settle)
            with build.if_then(build.icmp_signed("<", step, last)):
                w.call(weigh, X, V, weights, count, d)
                with w.loop(tall, ROWS) as i:
                    w.call(mixtures, E, V, M, i, tall, count, wide)
                    with w.loop(w.least(w.plus(i, ROWS), count), 1, i) as r:
                        w.call(move, X, M, r, w.minus(r, i), d, numbers, normalised)
            new.append(w.least(w.plus(frame, looks), w.minus(frames, 1)))
        w.end()

    def _tell(
        self, w: _Vectors, frame: Any, frames: Any, total: Any, told: Any, met: Any, settle: Any
    ) -> None:
        """Write the density of a frame; leave where all that is left is known."""
        build, pairs = w.build, w.number(total, 0)
        some = build.fcmp_ordered(">=", pairs, REAL(TINY))
        share = build.fdiv(w.vector_at(met, 0), w.every(build.select(some, pairs, REAL(1.0))))
        share = build.select(some, share, w.every(1.0))
        w.put(share, told, frame)
        met_in = build.fcmp_ordered(">=", share, w.every(1.0))  # not where that is no number
        word = ir.IntType(self.lanes)
        all_met = build.icmp_unsigned("==", build.bitcast(met_in, word), word(2**self.lanes - 1))
        over = build.and_(build.icmp_signed("!=", settle, WHOLE(0)), all_met)
        with build.if_then(over):
            with w.loop(frames, 1, frame) as later:
                w.put(w.every(1.0), told, later)
            build.ret_void()

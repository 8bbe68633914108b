"""Attention on a CPU by tiles of tokens that stay in the cache of a core, as machine code.

    heard_i = sum_j A_ij v_j,   A_ij = w_j e^{c <q_i, k_j> - s}, or over its sum over j

A tile has 48 queries and 48 keys (96 with vectors of sixteen). Its logits are a product of matrices
that holds 6 rows and two vectors of columns in registers; its exponentials are made where they lie,
in base two; and it is multiplied into what is heard. The matrix A never leaves the nearest cache.
Where queries, keys and values are the same unit vectors the tiles (I, J) and (J, I) are each
other's transpose and are computed once, and c itself is above every logit. Elsewhere the largest
logit is carried along (online softmax) unless the lengths of queries and keys say that nothing can
overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import ir

from tokenflock.engines.native.writer import PLACE, REAL, WHOLE, Writer

ROWS = 6  # of a product in registers: 12 sums, two columns and a row are 15 of 16 registers
TILES = 4  # of queries that stay in the second-level cache while keys go by
GENTLE = 40.0  # logits below this overflow nowhere
LOG2E = math.log2(math.e)
UNSEEN = -1e30
LEAST = -1e29  # the largest logit before any


def module(lanes: int) -> ir.Module:
    """Two functions for XLA, `alike` and `apart`, and all that they call."""
    made = ir.Module()
    parts = _Parts(made, lanes)
    for alike in (True, False):
        parts.handler(parts.hear(alike), alike)
    return made


class _Parts:
    """The functions of the kernel."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.module, self.lanes, self.panel = module, lanes, 2 * lanes
        self.side = ROWS * lanes  # of a tile: a multiple of ROWS and of two vectors

    def writer(self, name: str, kinds: Sequence[ir.Type]) -> Writer:
        return Writer(self.module, name, kinds, self.lanes)

    @cache  # noqa: B019
    def strip(self, rows: int, vectors: int, adds: bool) -> Any:
        """C[r, :] = or += sum_k A[r down + k along] B[k onward, :] for a few rows r and vectors."""
        kinds = [PLACE, WHOLE, WHOLE, PLACE, WHOLE, WHOLE, PLACE, WHOLE]
        w = self.writer(f"strip{rows}x{vectors}{'+' if adds else ''}", kinds)
        A, down, along, B, onward, count, C, apart = w.args
        places = [
            w.plus(w.times(r, apart), v * self.lanes) for r in range(rows) for v in range(vectors)
        ]
        begin = [w.load(C, place) if adds else w.every(0.0) for place in places]
        with w.sums(count, begin) as (k, sums, new):
            column = [w.load(B, w.plus(w.times(k, onward), v * self.lanes)) for v in range(vectors)]
            for r in range(rows):
                a = w.every(w.number(A, w.plus(w.times(k, along), w.times(r, down))))
                new += [w.fma(a, column[v], sums[r * vectors + v]) for v in range(vectors)]
        for place, value in zip(places, new):
            w.store(value, C, place)
        return w.end()

    @cache  # noqa: B019
    def product(self, adds: bool) -> Any:
        """C = or += A B for any even number of rows and any number of vectors of columns."""
        kinds = [PLACE, WHOLE, WHOLE, PLACE, WHOLE, WHOLE, PLACE, WHOLE, WHOLE, WHOLE]
        w = self.writer(f"product{'+' if adds else ''}", kinds)
        A, down, along, B, onward, count, C, apart, rows, columns = w.args

        def across(some: int, r: Any) -> None:
            a, c = w.at(A, w.times(r, down)), w.times(r, apart)

            def strip(vectors: int, column: Any) -> None:
                w.call(
                    self.strip(some, vectors, adds),
                    *(a, down, along, w.at(B, column), onward, count),
                    *(w.at(C, w.plus(c, column)), apart),
                )

            whole = w.build.sub(columns, w.build.srem(columns, WHOLE(self.panel)))
            with w.loop(whole, self.panel) as column:
                strip(2, column)
            with w.loop(columns, self.lanes, whole) as column:
                strip(1, column)

        first: Any = WHOLE(0)
        for some in (ROWS, 4, 2):
            left = w.build.sub(rows, first)
            last = w.build.sub(rows, w.build.srem(left, WHOLE(some)))
            with w.loop(last, some, first) as r:
                across(some, r)
            first = last
        return w.end()

    @cache  # noqa: B019
    def weigh(self, both: bool) -> Any:
        """E <- 2^(slope E + offset) over a tile; its sums over columns and, where `both`, rows."""
        kinds = [PLACE, WHOLE, WHOLE, WHOLE, REAL, REAL, PLACE, PLACE, PLACE, PLACE]
        w = self.writer(f"weigh{'2' if both else ''}", kinds)
        E, apart, rows, columns, slope, offset, w_rows, w_columns, Z_rows, Z_columns = w.args
        slope, offset = w.every(slope), w.every(offset)
        with w.loop(rows) as r:
            line, own = w.at(E, w.times(r, apart)), w.every(w.number(w_rows, r))
            place = w.times(r, self.lanes)
            with w.sums(columns, [w.load(Z_rows, place)], self.lanes) as (c, (Z,), new):
                e = w.power(w.fma(w.load(line, c), slope, offset))
                w.store(e, line, c)
                new.append(w.fma(e, w.load(w_columns, c), Z))
                if both:
                    w.store(w.fma(e, own, w.load(Z_columns, c)), Z_columns, c)
            w.store(new[0], Z_rows, place)
        return w.end()

    @cache  # noqa: B019
    def weigh_online(self) -> Any:
        """The same with the largest logit of each row carried, and what it heard before scaled."""
        kinds = [PLACE, WHOLE, WHOLE, WHOLE, REAL, PLACE, PLACE, PLACE, PLACE, PLACE, WHOLE]
        w = self.writer("weigh.online", kinds)
        E, apart, rows, columns, slope, bias, w_columns, Z_rows, tops, H, e = w.args
        slope = w.every(slope)
        with w.loop(rows) as r:
            line, place = w.at(E, w.times(r, apart)), w.times(r, self.lanes)
            old = w.number(tops, r)
            with w.sums(columns, [w.every(old)], self.lanes) as (c, (top,), new):
                y = w.fma(w.load(line, c), slope, w.load(bias, c))
                w.store(y, line, c)
                new.append(w.larger(y, top))
            top = w.total(new[0], "fmax")
            w.store(top, tops, r)
            top = w.every(top)
            fade = w.power(w.build.fsub(w.every(old), top))
            start = w.build.fmul(w.load(Z_rows, place), fade)
            with w.sums(columns, [start], self.lanes) as (c, (Z,), new):
                exponential = w.power(w.build.fsub(w.load(line, c), top))
                w.store(exponential, line, c)
                new.append(w.fma(exponential, w.load(w_columns, c), Z))
            w.store(new[0], Z_rows, place)
            heard = w.at(H, w.times(r, e))
            with w.loop(e, self.lanes) as c:
                w.store(w.build.fmul(w.load(heard, c), fade), heard, c)
        return w.end()

    def hear(self, alike: bool) -> Any:
        """What every token of one system hears, and the sum of its weights."""
        kinds = [PLACE] * 8 + [WHOLE] * 3
        w = self.writer(f"hear{'.alike' if alike else ''}", kinds)
        q, k, v, weights, numbers, heard, total, room, n, m, e = w.args
        tall, wide = w.up(n, self.panel), w.up(e, self.lanes)
        at = _Places(w, room, tall, wide, m)
        c, shift, divides, bound = (w.number(numbers, place) for place in range(4))
        build = w.build
        slope = build.fmul(c, REAL(LOG2E))
        divided = build.fcmp_ordered(">", divides, REAL(0.0))
        peak = build.fmul(build.select(divided, c, shift) if alike else shift, REAL(-LOG2E))
        offset = peak if alike else build.select(divided, REAL(0.0), peak)
        gentle = build.fcmp_ordered("<=", bound, REAL(GENTLE))
        online = build.and_(divided, build.not_(gentle))
        w.call(self.packed(), q, k, v, weights, room, n, m, e)
        with self._tiles(w, tall, alike) as (i, j):
            rows, columns = (w.least(self.side, build.sub(tall, place)) for place in (i, j))
            with w.loop(columns, self.panel) as p:
                w.call(
                    self.product(False),
                    *(w.at(at.Q, w.times(i, m)), m, 1),
                    *(w.at(at.K, w.times(w.plus(j, p), m)), self.panel, m),
                    *(w.at(at.E, p), self.side, rows, self.panel),
                )
            tile = at.E, self.side, rows, columns, slope
            own, other = (
                (w.at(at.w, place), w.at(at.Z, w.times(place, self.lanes)), w.times(place, wide))
                for place in (i, j)
            )
            Z_columns = w.at(at.down, j)
            even = (*tile, offset, own[0], other[0], own[1], Z_columns)
            back = (at.E, 1, self.side, w.at(at.V, own[2]), wide, rows)
            if alike:
                with build.if_else(build.icmp_signed("!=", i, j)) as (apart, same):
                    with apart:
                        w.call(self.weigh(True), *even)
                        there = w.at(at.H, other[2])
                        w.call(self.product(True), *back, there, wide, columns, wide)
                    with same:
                        w.call(self.weigh(False), *even)
            else:
                with build.if_else(online) as (careful, plain):
                    with careful:
                        bias, tops = w.at(at.bias, j), w.at(at.tops, i)
                        here = w.at(at.H, own[2])
                        more = bias, other[0], own[1], tops, here, wide
                        w.call(self.weigh_online(), *tile, *more)
                    with plain:
                        w.call(self.weigh(False), *even)
            forth = (at.E, self.side, 1, w.at(at.V, other[2]), wide, columns)
            w.call(self.product(True), *forth, w.at(at.H, own[2]), wide, rows, wide)
        w.call(self.told(), room, heard, total, divides, n, m, e)
        return w.end()

    @contextmanager
    def _tiles(self, w: Writer, tall: Any, alike: bool) -> Iterator[tuple[Any, Any]]:
        """The first query and the first key of every tile, or of every other one of a pair. Keys
        that were fetched from afar serve several tiles of queries.
        """
        strip = TILES * self.side
        with w.loop(tall, strip) as far, w.loop(tall, self.side, far if alike else 0) as j:
            end = w.least(w.plus(far, strip), w.plus(j, self.side) if alike else tall)
            with w.loop(w.least(end, tall), self.side, far) as i:
                yield i, j

    @cache  # noqa: B019
    def packed(self) -> Any:
        """Queries, keys (across, two vectors of tokens at a time) and weighted values laid out;
        sums set to zero. Tokens that fill up the last tile weigh nothing.
        """
        w = self.writer("packed", [PLACE] * 5 + [WHOLE] * 3)
        q, k, v, weights, room, n, m, e = w.args
        tall, wide = w.up(n, self.panel), w.up(e, self.lanes)
        at, build = _Places(w, room, tall, wide, m), w.build
        zero = w.every(0.0)
        for start, end in ((at.Q, at.Z), (at.Z, at.E)):
            length = build.sub(build.ptrtoint(end, WHOLE), build.ptrtoint(start, WHOLE))
            with w.loop(build.sdiv(length, WHOLE(4)), self.lanes) as place:
                w.store(zero, start, place)
        with w.loop(tall) as j:
            w.store(REAL(UNSEEN), at.bias, j)
            w.store(REAL(LEAST), at.tops, j)
        with w.loop(n) as j:
            weight = w.number(weights, j)
            w.store(weight, at.w, j)
            seen = build.fcmp_ordered(">", weight, REAL(0.0))
            w.store(build.select(seen, REAL(0.0), REAL(UNSEEN)), at.bias, j)
            with w.loop(e) as c:
                said = w.number(v, w.plus(w.times(j, e), c))
                w.store(build.fmul(weight, said), at.V, w.plus(w.times(j, wide), c))
        with w.loop(w.times(n, m)) as place:
            w.store(w.number(q, place), at.Q, place)
        blocks = build.sub(n, build.srem(n, WHOLE(self.lanes)))
        even = build.icmp_signed("==", build.srem(m, WHOLE(self.lanes)), WHOLE(0))
        blocks = build.select(even, blocks, WHOLE(0))
        with w.loop(blocks, self.lanes) as j, w.loop(m, self.lanes) as c:
            square = [w.load(k, w.plus(w.times(w.plus(j, r), m), c)) for r in range(self.lanes)]
            there = w.plus(self._across(w, j, m), w.times(c, self.panel))
            for r, line in enumerate(w.transposed(square)):
                w.store(line, at.K, w.plus(there, r * self.panel))
        with w.loop(n, 1, blocks) as j, w.loop(m) as c:
            there = w.plus(self._across(w, j, m), w.times(c, self.panel))
            w.store(w.number(k, w.plus(w.times(j, m), c)), at.K, there)
        return w.end()

    def _across(self, w: Writer, j: Any, m: Any) -> Any:
        """Where the first coordinate of key j lies."""
        within = w.build.srem(j, WHOLE(self.panel))
        return w.plus(w.times(w.build.sub(j, within), m), within)

    @cache  # noqa: B019
    def told(self) -> Any:
        """What was heard, divided by its weights or not, and their sum."""
        w = self.writer("told", [PLACE] * 3 + [REAL] + [WHOLE] * 3)
        room, heard, total, divides, n, m, e = w.args
        tall, wide = w.up(n, self.panel), w.up(e, self.lanes)
        at, build = _Places(w, room, tall, wide, m), w.build
        divided = build.fcmp_ordered(">", divides, REAL(0.0))
        with w.loop(n) as i:
            Z = build.fadd(w.total(w.load(at.Z, w.times(i, self.lanes))), w.number(at.down, i))
            none = build.fcmp_ordered("==", Z, REAL(0.0))
            share = build.select(none, REAL(0.0), build.fdiv(REAL(1.0), Z))
            one = build.select(none, REAL(0.0), REAL(1.0))
            w.store(build.select(divided, one, Z), total, i)
            factor = build.select(divided, share, REAL(1.0))
            with w.loop(e) as c:
                sum_ = w.number(at.H, w.plus(w.times(i, wide), c))
                w.store(build.fmul(factor, sum_), heard, w.plus(w.times(i, e), c))
        return w.end()

    def handler(self, hear: Any, alike: bool) -> None:
        """The function that XLA calls with a frame of buffers: all systems, one by one."""
        name = "alike" if alike else "apart"
        w = Writer(self.module, name, [PLACE], self.lanes, returns=PLACE)
        build, frame = w.build, w.args[0]
        null = ir.Constant(PLACE, None)

        def word(base: Any, offset: int, kind: ir.Type = PLACE) -> Any:
            return build.load(w.at(base, offset, ir.IntType(8)), typ=kind, align=4)

        extension = word(frame, 8)
        with build.if_then(build.icmp_unsigned("!=", extension, null)):
            # XLA asks which version of its interface this is: that of the frame
            metadata, api = word(extension, 24), word(frame, 16)
            version = word(api, 32, WHOLE)
            build.store(version, w.at(metadata, 24, ir.IntType(8)), align=4)
            build.ret(null)
        inputs, outputs = word(frame, 72), word(frame, 112)

        def buffer(table: Any, number: int) -> Any:
            return build.load(w.at(table, number, PLACE), typ=PLACE)

        count = 3 if alike else 5
        given = [buffer(inputs, number) for number in range(count)]
        results = [buffer(outputs, number) for number in range(2)]
        q, v = given[0], given[0 if alike else 2]
        (systems, n, m), (_, _, e) = (self._shape(w, array, word) for array in (q, v))
        tall, wide = w.up(n, self.panel), w.up(e, self.lanes)
        floats = w.plus(
            w.times(tall, w.plus(w.times(2, w.plus(m, wide)), 4 + self.lanes)), self.side**2
        )
        size = w.times(w.plus(floats, 16), 4)
        malloc = w.declared("malloc", ir.FunctionType(PLACE, [WHOLE]))
        free = w.declared("free", ir.FunctionType(ir.VoidType(), [PLACE]))
        raw = build.call(malloc, [size])
        room = build.inttoptr(w.up(build.ptrtoint(raw, WHOLE), 64), PLACE)
        sizes = {"q": w.times(n, m), "v": w.times(n, e), "w": n, "4": WHOLE(4)}
        letters = ["q", "w", "4"] if alike else ["q", "q", "v", "w", "4"]
        with w.loop(systems) as s:
            ins = [w.at(word(a, 24), w.times(s, sizes[b])) for a, b in zip(given, letters)]
            outs = [w.at(word(a, 24), w.times(s, sizes[b])) for a, b in zip(results, "vw")]
            ins = [ins[0]] * 2 + ins if alike else ins
            w.call(hear, *ins, *outs, room, n, m, e)
        build.call(free, [raw])
        build.ret(null)

    def _shape(self, w: Writer, buffer: Any, word: Any) -> tuple[Any, Any, Any]:
        """(product of the first sizes, the last but one, the last) of a buffer."""
        rank, dims = word(buffer, 32, WHOLE), word(buffer, 40)
        build = w.build

        def size(place: Any) -> Any:
            return build.load(w.at(dims, place, WHOLE), typ=WHOLE)

        with w.sums(build.sub(rank, WHOLE(2)), [WHOLE(1)]) as (k, (so_far,), new):
            new.append(build.mul(so_far, size(k)))
        return new[0], size(build.sub(rank, WHOLE(2))), size(build.sub(rank, WHOLE(1)))


class _Places:
    """Where the arrays of one system lie in its room."""

    def __init__(self, w: Writer, room: Any, tall: Any, wide: Any, m: Any) -> None:
        tokens, said = w.times(tall, m), w.times(tall, wide)
        sizes = {
            "Q": tokens,
            "K": tokens,
            "V": said,
            "H": said,
            "Z": w.times(tall, w.lanes),
            "w": tall,
            "bias": tall,
            "tops": tall,
            "down": tall,
            "E": WHOLE(0),
        }
        self.Q = self.K = self.V = self.H = self.Z = self.E = room
        self.w = self.bias = self.tops = self.down = room
        for name, size in sizes.items():
            setattr(self, name, room)
            room = w.at(room, size)

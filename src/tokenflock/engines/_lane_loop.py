"""The loop of `lanes`, compiled by numba: one group of sixteen systems, a system in each lane of a
vector.

Two types carry it: a `vector` is one number of every system, a `Tile` is rows x columns of them,
and both live in registers. An array of vectors has shape (vectors, LANES) and is addressed by the
number of the vector.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic as untyped_intrinsic
from numba.extending import models, overload, register_model

LANES = 16
BLOCK = 4  # rows and columns of a tile: 16 sums, for 32 registers
ONE, TWO, THREE, FOUR = (
    (0,),
    (0,) * 2,
    (0,) * 3,
    (0,) * 4,
)  # numbers of rows or columns that the compiler knows
TINY = 2.0**-126
MAGIC = (
    1.5 * 2.0**23 + 127
)  # added to a small number, it leaves the nearest integer, plus 127, in the last bits

_WORD = ir.VectorType(ir.IntType(32), LANES)
_NUMBERS = ir.VectorType(ir.FloatType(), LANES)
_FUSE = ("contract",)  # a * b + c may be one instruction


class Vector(types.Type):
    """One number of every system."""


class Tile(types.Type):
    """rows x columns vectors."""

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        super().__init__(f"Tile({rows}, {columns})")


vector = Vector("vector")
register_model(Vector)(lambda manager, kind: models.PrimitiveModel(manager, kind, _NUMBERS))
register_model(Tile)(
    lambda manager, kind: models.PrimitiveModel(
        manager, kind, ir.ArrayType(_NUMBERS, kind.rows * kind.columns)
    )
)


Arguments = ParamSpec("Arguments")


def _intrinsic(function: Callable[Concatenate[Any, Arguments], Any]) -> Callable[Arguments, Any]:
    """numba's `intrinsic`, with the signature that it makes: without the typing context."""
    return cast(Callable[Arguments, Any], untyped_intrinsic(function))


def _address(context, builder, kind, array, at):
    """Where vector number `at` of an array lies."""
    start = builder.bitcast(
        context.make_array(kind)(context, builder, array).data, _NUMBERS.as_pointer()
    )
    return builder.gep(start, [at])


def _load(context, builder, kind, array, at):
    return builder.load(_address(context, builder, kind, array, at), align=4)


def _store(context, builder, kind, array, at, value):
    builder.store(value, _address(context, builder, kind, array, at), align=4)


def _step(builder, at, step, k: int):
    """at + k step."""
    return builder.add(at, builder.mul(step, step.type(k)))


def _splat(context, builder, kind, value):
    """A number in every lane; a vector as it is."""
    if kind == vector:
        return value
    first = builder.insert_element(
        ir.Constant(_NUMBERS, ir.Undefined),
        context.cast(builder, value, kind, types.float32),
        ir.IntType(32)(0),
    )
    return builder.shuffle_vector(
        first, ir.Constant(_NUMBERS, ir.Undefined), ir.Constant(_WORD, [0] * LANES)
    )


def _instruction(emit):
    """A function of vectors and numbers that gives a vector: emit(builder, *vectors)."""

    def code(context, builder, signature, args):
        return emit(
            builder,
            *(_splat(context, builder, kind, value) for kind, value in zip(signature.args, args)),
        )

    return code


@_intrinsic
def load(typing, array, at):
    """Vector number `at` of an array."""

    def code(context, builder, signature, args):
        return _load(context, builder, signature.args[0], *args)

    return vector(array, types.intp), code


@_intrinsic
def store(typing, array, at, value):
    """Write vector number `at` of an array."""

    def code(context, builder, signature, args):
        _store(context, builder, signature.args[0], *args)

    return types.void(array, types.intp, vector), code


@_intrinsic
def splat(typing, number):
    """A number in every lane."""
    return vector(number), _instruction(lambda builder, x: x)


@_intrinsic
def root(typing, x):
    """The square root of each lane."""
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS])
    name = f"llvm.sqrt.v{LANES}f32"
    return vector(x), _instruction(
        lambda builder, x: builder.call(builder.module.declare_intrinsic(name, (), kind), [x])
    )


@_intrinsic
def where(typing, x, least, yes, no):
    """`yes` in lanes where x >= least, else `no`; not a number counts as less."""
    emit = _instruction(
        lambda builder, x, least, yes, no: builder.select(
            builder.fcmp_ordered(">=", x, least), yes, no
        )
    )
    return vector(x, least, yes, no), emit


@_intrinsic
def last_bits_to_exponent(typing, x):
    """2^k where the last eight bits of x hold k + 127."""

    def emit(builder, x):
        return builder.bitcast(
            builder.shl(builder.bitcast(x, _WORD), ir.Constant(_WORD, [23] * LANES)), _NUMBERS
        )

    return vector(x), _instruction(emit)


@_intrinsic
def zeros(typing, rows, columns):
    """A tile of zeros; its shape is that of two tuples."""
    kind = Tile(len(rows), len(columns))
    return kind(rows, columns), lambda context, builder, signature, args: ir.Constant(
        context.get_value_type(kind), None
    )


@_intrinsic
def add_outer(typing, tile, A, a, down, B, b, right):
    """tile[r, c] + A[a + r down] B[b + c right]."""

    def code(context, builder, signature, args):
        sums, A, a, down, B, b, right = args
        row = [
            _load(context, builder, signature.args[1], A, _step(builder, a, down, r))
            for r in range(tile.rows)
        ]
        column = [
            _load(context, builder, signature.args[4], B, _step(builder, b, right, c))
            for c in range(tile.columns)
        ]
        for k in range(tile.rows * tile.columns):
            product = builder.fmul(row[k // tile.columns], column[k % tile.columns], flags=_FUSE)
            total = builder.fadd(builder.extract_value(sums, k), product, flags=_FUSE)
            sums = builder.insert_value(sums, total, k)
        return sums

    place = types.intp
    return tile(tile, A, place, place, B, place, place), code


@_intrinsic
def store_tile(typing, array, at, down, tile):
    """array[at + r down + c] = tile[r, c]."""

    def code(context, builder, signature, args):
        array, at, down, values = args
        for k in range(tile.rows * tile.columns):
            place = _step(
                builder, _step(builder, at, down, k // tile.columns), down.type(1), k % tile.columns
            )
            _store(
                context, builder, signature.args[0], array, place, builder.extract_value(values, k)
            )

    return types.void(array, types.intp, types.intp, tile), code


def _operator(symbol, name):
    """Teach numba an arithmetic operator of vectors, or of a vector and a number."""

    @_intrinsic
    def function(typing, x, y):
        return vector(x, y), _instruction(
            lambda builder, x, y: getattr(builder, name)(x, y, flags=_FUSE)
        )

    @overload(symbol)
    def overloaded(x, y):
        if vector in (x, y):
            return lambda x, y: function(x, y)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


@njit
def exponential(y):
    """2^y to rounding: a polynomial of what is left of y, and the exponent bits.

    2^-126 below -126; infinite from 127.5 on.
    """
    y = where(y, -126.0, where(y, 128.0, 128.0, y), -126.0)
    shifted = y + MAGIC
    f = y - (shifted - MAGIC)
    p = 1.326472763e-3 * f + 9.671512646e-3
    p = p * f + 5.550733742e-2
    p = p * f + 2.402224209e-1
    p = p * f + 6.931469776e-1
    p = p * f + 1.0
    return p * last_bits_to_exponent(shifted)


@njit
def multiply(rows, columns, A, a, down, along, B, b, right, onward, count):
    """The tile sum_k A[a + r down + k along] B[b + c right + k onward]."""
    tile = zeros(rows, columns)
    for k in range(count):
        tile = add_outer(tile, A, a + k * along, down, B, b + k * onward, right)
    return tile


@njit
def cosines(X, E, i, n, d):
    """E_ij = <x_i, x_j> for a block of rows i and all j before them and among them."""
    for j in range(0, i + 1, BLOCK):
        store_tile(E, i * n + j, n, multiply(FOUR, FOUR, X, i * d, d, 1, X, j * d, d, 1, d))


@njit
def meetings(E, w, i, n, least, met):
    """met + 2 w_i w_j for all j < i whose cosine is at least `least`."""
    for j in range(i):
        c = load(E, i * n + j)
        met = met + (
            where(c, least, 2 * w[i] * w[j], 0.0) + 0.0 * c
        )  # a cosine that is not a number stays to be seen
    return met


@njit
def kernel(E, i, n, slope, offset):
    """E_ij = E_ji = 2^(slope E_ij + offset) for all j <= i."""
    for j in range(i + 1):
        e = exponential(load(E, i * n + j) * slope + offset)
        store(E, i * n + j, e)
        store(E, j * n + i, e)


@njit
def mixtures(E, V, M, i, n, count, d):
    """M_ik = sum_j E_ij V_jk for a block of rows i and all d columns k."""
    whole = d - d % BLOCK
    for k in range(0, whole, BLOCK):
        store_tile(M, k, d, multiply(FOUR, FOUR, E, i * n, n, 1, V, k, 1, d, count))
    if d % BLOCK == 1:
        store_tile(M, whole, d, multiply(FOUR, ONE, E, i * n, n, 1, V, whole, 1, d, count))
    elif d % BLOCK == 2:
        store_tile(M, whole, d, multiply(FOUR, TWO, E, i * n, n, 1, V, whole, 1, d, count))
    elif d % BLOCK == 3:
        store_tile(M, whole, d, multiply(FOUR, THREE, E, i * n, n, 1, V, whole, 1, d, count))


@njit
def move(X, M, i, r, d, h, normalised):
    """x_i <- normalize(x_i + h M_r / Z_r); Z_r is the last column of M."""
    scale = h / load(M, r * (d + 1) + d) if normalised else h
    square = splat(0.0)
    for k in range(d):
        y = load(X, i * d + k) + scale * load(M, r * (d + 1) + k)
        store(X, i * d + k, y)
        square = square + y * y
    inverse = where(
        square, TINY, root(square) / square, 1.0
    )  # not a number if the square is infinite
    for k in range(d):
        store(X, i * d + k, load(X, i * d + k) * inverse)


@njit
def weigh(X, V, w, d):
    """V_j = w_j (x_j, 1)."""
    for j in range(len(w)):
        for k in range(d):
            store(V, j * (d + 1) + k, load(X, j * d + k) * w[j])
        store(V, j * (d + 1) + d, splat(w[j]))


@njit(nogil=True, cache=True)
def loop(X, work, w, numbers, normalised, steps, settle, densities):
    """Pair densities of one group of systems at the given steps, into `densities`.

    X and the arrays `work` = (V, E, M) are worked upon; `numbers` of the systems are (slope,
    offset, h, least).
    """
    V, E, M = work
    slope, offset, h, least = numbers
    count = len(w)
    n = -(-count // BLOCK) * BLOCK
    d = len(X) // n
    pairs = splat(0.0)
    for i in range(count):
        for j in range(i):
            pairs = pairs + splat(2 * w[i] * w[j])
    frame = 0
    for step in range(steps[-1] + 1):
        look = step == steps[frame]
        met = splat(0.0)
        for i in range(0, n, BLOCK):
            cosines(X, E, i, n, d)
            for r in range(i, min(i + BLOCK, count)):
                if look:
                    met = meetings(E, w, r, n, load(least, 0), met)
                kernel(E, r, n, load(slope, 0), load(offset, 0))
        if look:
            store(densities, frame, where(pairs, TINY, met / pairs, 1.0))
            frame += 1
            if settle and densities[frame - 1].min() >= 1:
                densities[frame:] = 1
                return
        if step < steps[-1]:
            weigh(X, V, w, d)
            for i in range(0, n, BLOCK):
                mixtures(E, V, M, i, n, count, d + 1)
                for r in range(i, min(i + BLOCK, count)):
                    move(X, M, r, r - i, d, load(h, 0), normalised)

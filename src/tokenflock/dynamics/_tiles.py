"""Attention by tiles of queries and keys: logits live on chip only, memory grows like n.

    heard_i = sum_j A_ij v_j,   A_ij = w_j e^{c <q_i, k_j> - s}, or over its sum over j

One program of the GPU (Pallas, Triton) takes a tile of queries through all keys and carries the
largest logit and the sums along (online softmax), in base two. In a few dimensions the products are
plain multiplications; in more they run on tensor cores, as three products of halves a = a_1 + a_2
(`engines/_split_products`): keys and values are split once, beforehand, relative to their largest
entry, and the exponentials lie in [0, 1] because the largest is carried; both are raised to where
half precision has all its digits. Layers of unit vectors end on chip, and leave the halves for the
next one (`layers`). Written for one head of one system: `vmap` makes the rest a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Float

from tokenflock.dynamics._kernels import exponentials
from tokenflock.dynamics._padding import padded
from tokenflock.shapes import Array, Points, Scalar, Tokens, Weights

LOG2E = math.log2(math.e)
UNSEEN = -1e30  # log2 of the weight of a token that is not seen
LEAST = -1e29  # the largest logit before any: above what is not seen, so that its weight is zero
FEW = 4  # coordinates up to which plain multiplications are quicker than tensor cores
WIDEST = 128  # coordinates of queries, keys and values on chip
ROWS = 64  # rows of A that `listen_by_rows` holds at once
RAISED = 12  # 2^12: low halves of what is at most this are no subnormal numbers

Sees = Callable[[Array, Array], Array]  # (places of queries (a, 1), of keys (1, b)) -> (a, b)

After = Callable[[Array, Array, Array], Array]  # (tokens (a, d), heard (a, d), step h) -> (a, d)
Tile = tuple[Array, Array]  # the two halves of some rows


class Listening(NamedTuple):
    """How queries listen to keys, beyond their inner products; the same for all tiles."""

    divides: bool = True
    "whether weights are divided by their sum"
    sees: Sees | None = None
    "who sees whom; None where all see all"
    causal: bool = False
    "whether no query sees a later key"
    peaked: bool = False
    "whether each query is its own largest logit: queries are keys, unit vectors, and c >= 0"
    unit: bool = False
    "whether queries, keys and values are the same unit vectors, which need no scale"


class Sides(NamedTuple):
    """The tile, and how many threads share it."""

    rows: int
    columns: int
    warps: int
    stages: int


def sides(n: int, width: int, alike: bool = False) -> Sides:
    """The tile that was found quickest for n tokens of so many coordinates; queries, keys and
    values that are `alike` take less room.
    """
    if width <= FEW:
        return Sides(32, 32, 4, 2)
    if width <= 32 or n <= 64:
        return Sides(64, 64, 4, 3)
    if width <= 64:
        return Sides(64, 128 if alike else 64, 4, 3)
    return Sides(64, 64 if alike else 32, 4, 2)


def listen(
    q: Points,
    k: Tokens,
    v: Tokens,
    w: Weights,
    c: Scalar,
    shift: Scalar,
    how: Listening,
    interpret: bool = False,
) -> tuple[Points, Float[Array, " m"]]:
    """(heard (m, e), sum of the weights A_i (m,)): the field of one head, without the matrix A.

    `shift` is taken off every logit; it matters only where nothing is divided.
    """
    (m, width), (n, said) = q.shape, v.shape
    few = max(width, said) <= FEW
    tile = sides(n, max(width, said), how.unit)
    rows, columns = _up(m, tile.rows), _up(n, tile.columns)
    if how.unit:
        rows = columns = max(rows, columns)
    wide, loud = (width, said) if few else (padded(width), padded(said))
    q, k, v = _pad(q, rows, wide), _pad(k, columns, wide), _pad(v, columns, loud)
    scale = jnp.ones((), q.dtype)
    if few:
        operands, kernel = (q.T, k.T, v.T), _few
    elif how.unit:
        operands, kernel = split(k), _alike
    else:
        (q, a), (k, b), (v, scale) = map(_scaled, (q, k, v))
        operands, kernel, c = (q, *split(k), *split(v)), _many, c * a * b
    heard, total = pl.pallas_call(
        partial(kernel, how=how, tile=tile, count=columns // tile.columns),
        out_shape=(
            jax.ShapeDtypeStruct((loud, rows) if few else (rows, loud), q.dtype),
            jax.ShapeDtypeStruct((rows,), q.dtype),
        ),
        grid=(rows // tile.rows,),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=tile.warps, num_stages=tile.stages),
    )(*operands, _log2(w, columns), *_numbers(q, c, shift))
    return (heard.T if few else heard)[:m, :said] * scale, total[:m]


def layers(
    x: Tokens,
    w: Weights,
    c: Callable[[Array], Scalar | float],
    shift: Callable[[Array], Scalar | float],
    h: Scalar | float,
    count: int,
    after: After,
    how: Listening,
    interpret: bool = False,
) -> Tokens:
    """Unit vectors after so many layers x <- after(x, what they heard, h), in more than a few
    coordinates; c and shift may change from layer to layer.
    """
    n, d = x.shape
    tile = sides(n, d, True)
    size, wide = max(_up(n, tile.rows), _up(n, tile.columns)), padded(d)
    y, log_w = _pad(x, size, wide), _log2(w, size)
    half = jax.ShapeDtypeStruct((size, wide), jnp.float16)
    call = pl.pallas_call(
        partial(_layer, how=how, after=after, tile=tile, count=size // tile.columns),
        out_shape=(jax.ShapeDtypeStruct((size, wide), x.dtype), half, half),
        grid=(size // tile.rows,),
        # a program reads its own tokens before it writes them; the others read halves
        input_output_aliases={0: 0},
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=tile.warps, num_stages=tile.stages),
    )

    def once(number: Array, carry: Any) -> Any:
        return call(*carry, log_w, *_numbers(x, c(number), shift(number), h))

    # two layers at a time: halves go from one place in memory to another and back, uncopied
    y, *_ = jax.lax.fori_loop(0, count, once, (y, *split(y)), unroll=min(count, 2))
    return y[:n, :d]


def listen_by_rows(
    q: Points, k: Tokens, v: Tokens, w: Weights, c: Scalar, shift: Scalar, how: Listening
) -> tuple[Points, Float[Array, " m"]]:
    """The same as `listen` on any device and in any precision: rows of the matrix A, a strip of
    them at a time.
    """

    def row(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        query, i = pair
        S = c * (k @ query) - shift
        if how.sees is not None:
            S = jnp.where(how.sees(i, jnp.arange(k.shape[0])), S, -jnp.inf)
        if not how.divides:
            A = w * jnp.exp(S)
            return A @ v, jnp.sum(A)
        E, Z = exponentials(S[None], w)
        return (E @ v)[0] / Z[0], jnp.sum(E) / Z[0, 0]

    return jax.lax.map(row, (q, jnp.arange(q.shape[0])), batch_size=min(ROWS, q.shape[0]))


def _up(number: int, side: int) -> int:
    """The next multiple of a side."""
    return -(-number // side) * side


def _pad(x: Array, rows: int, columns: int) -> Array:
    return jnp.pad(x, ((0, rows - x.shape[0]), (0, columns - x.shape[1])))


def _log2(w: Weights, size: int) -> Array:
    """Logarithms of the weights; what fills them up is not seen."""
    log_w = jnp.where(w > 0, jnp.log2(jnp.where(w > 0, w, 1)), UNSEEN)
    return jnp.pad(log_w, (0, size - w.shape[0]), constant_values=UNSEEN)


def _numbers(x: Array, *numbers: Any) -> list[Array]:
    """Numbers as a kernel takes them."""
    return [jnp.asarray(number, x.dtype).reshape(1) for number in numbers]


def _scaled(a: Array) -> tuple[Array, Array]:
    """(a over its largest entry, that entry): nothing leaves the range of half precision."""
    top = jnp.max(jnp.abs(a))
    top = jnp.where(top == 0, 1, top)
    return a * (1 / top), top


def split(a: Array) -> tuple[Array, Array]:
    """`_halves` of 2^12 a outside of a kernel, where XLA may drop a rounding that is undone."""
    a = a * 2.0**RAISED
    high = jax.lax.reduce_precision(a, exponent_bits=5, mantissa_bits=10)
    return high.astype(jnp.float16), (a - high).astype(jnp.float16)


def _halves(a: Array) -> tuple[Array, Array]:
    """(high, low) in half precision with a = high + low to 22 bits, where a is raised already."""
    high = a.astype(jnp.float16)
    return high, (a - high.astype(a.dtype)).astype(jnp.float16)


def _product(a: tuple[Array, Array], b: tuple[Array, Array], dimensions: Any) -> Array:
    """a b of matrices in halves, without the product of the two low ones."""

    def times(left: Array, right: Array) -> Array:
        return jax.lax.dot_general(
            left, right, (dimensions, ((), ())), jax.lax.Precision.DEFAULT, jnp.float32
        )

    return times(a[1], b[0]) + times(a[0], b[1]) + times(a[0], b[0])


def _visible(how: Listening, S: Array, first: Any, column: Any) -> Array:
    """Logits of a tile that begins at query `first` and key `column`; UNSEEN where unseen."""
    if how.sees is None:
        return S
    i = first + jax.lax.broadcasted_iota(jnp.int32, S.shape, 0)
    j = column + jax.lax.broadcasted_iota(jnp.int32, S.shape, 1)
    return jnp.where(how.sees(i, j), S, UNSEEN)


def _tiles_seen(how: Listening, first: Any, tile: Sides, count: int) -> Any:
    """How many tiles of keys the queries from `first` on need to look at."""
    if not how.causal:
        return count
    return jnp.minimum(count, (first + tile.rows - 1) // tile.columns + 1)


def _shares(how: Listening, Z: Array, top: Array, shift: Array) -> tuple[Array, Array]:
    """(what sums of values are multiplied by, the sum of the weights): divided by the sum, or with
    the carried scale undone.
    """
    if not how.divides:
        factor = jnp.exp2(top - shift)
        return factor, factor * Z
    none = Z == 0  # a query that sees nobody hears nothing
    return jnp.where(none, 0, 1 / jnp.where(none, 1, Z)), jnp.where(none, 0.0, 1.0)


def _many(q_ref, *refs, how, tile, count):
    """One tile of queries against all keys, products on tensor cores."""
    k_1, k_2, v_1, v_2, w_ref, c_ref, s_ref, out, total = refs
    here, c = _here(tile), c_ref[0] * LOG2E
    own = q_ref[here, :]
    top = c * jnp.sum(own * own, axis=1) if how.peaked else None

    def tiles(keys):
        return (k_1[keys, :], k_2[keys, :]), (v_1[keys, :], v_2[keys, :])

    q = _halves(own * 2.0**RAISED)
    heard, Z, top = _hear(q, tiles, w_ref, c, top, out.shape[1], how, tile, count)
    factor, total[here] = _shares(how, Z, top, s_ref[0] * LOG2E)
    out[here, :] = factor[:, None] * heard


def _alike(x_1, x_2, w_ref, c_ref, s_ref, out, total, *, how, tile, count):
    """The same for unit vectors that are queries, keys and values."""
    here = _here(tile)
    heard, Z, top = _hear_alike(x_1, x_2, w_ref, c_ref, how, tile, count)
    factor, total[here] = _shares(how, Z, top, s_ref[0] * LOG2E)
    out[here, :] = factor[:, None] * heard


def _layer(*refs, how, after, tile, count):
    """The same with what becomes of them, and its halves."""
    x_ref, x_1, x_2, w_ref, c_ref, s_ref, h_ref, y_ref, y_1, y_2 = refs
    here = _here(tile)
    heard, Z, top = _hear_alike(x_1, x_2, w_ref, c_ref, how, tile, count)
    factor, _ = _shares(how, Z, top, s_ref[0] * LOG2E)
    y = after(x_ref[here, :], factor[:, None] * heard, h_ref[0])
    y_ref[here, :] = y
    y_1[here, :], y_2[here, :] = _halves(y * 2.0**RAISED)


def _here(tile: Sides) -> Any:
    """The rows of a program."""
    return pl.ds(pl.program_id(0) * tile.rows, tile.rows)


def _hear_alike(x_1, x_2, w_ref, c_ref, how, tile, count):
    """What unit vectors hear; the largest logit of each is c."""
    here, c = _here(tile), c_ref[0] * LOG2E

    def tiles(keys):
        K = x_1[keys, :], x_2[keys, :]
        return K, K

    q = x_1[here, :], x_2[here, :]
    return _hear(q, tiles, w_ref, c, c, x_1.shape[1], how, tile, count)


def _hear(
    q: Tile,
    tiles: Callable[[Any], tuple[Tile, Tile]],
    w_ref: Any,
    c: Array,
    top: Array | None,
    width: int,
    how: Listening,
    tile: Sides,
    count: int,
) -> tuple[Array, Array, Array]:
    """(sums of values, sums of weights, largest logits) of a tile of queries, in halves, against
    all tiles of keys and values; `top` are the largest logits, or the largest, where it is known.
    """
    first = pl.program_id(0) * tile.rows
    # what a tile says is added one tile later: its last product ends while the next logits begin
    # (not where the number of tiles is known late, which costs more than it gains)
    late = not how.causal

    def step(number, carry):
        top, Z, heard, last = carry
        keys = pl.ds(number * tile.columns, tile.columns)
        K, V = tiles(keys)
        one = top.ndim == 0
        off = w_ref[keys] - (top - RAISED) if one else w_ref[keys]
        S = _product(q, K, ((1,), (1,))) * (c * 4.0**-RAISED) + off[None, :]
        S = _visible(how, S, first, number * tile.columns)
        heard = heard + last if late else heard
        new = top if how.peaked else jnp.maximum(top, jnp.max(S, axis=1))
        E = jnp.exp2(S if one else S - (new - RAISED)[:, None])
        if not how.peaked:
            fade = jnp.exp2(top - new)
            Z, heard = fade * Z, fade[:, None] * heard
        # a sum of its own for each tile: tensor cores cut off what they add to a larger number
        said = _product(_halves(E), V, ((1,), (0,)))
        heard, last = (heard, said) if late else (heard + said, last)
        return new, Z + jnp.sum(E, axis=1), heard, last

    start = jnp.full(tile.rows, LEAST, jnp.float32) if top is None else top
    zeros = jnp.zeros((tile.rows, width), jnp.float32)
    carry = start, jnp.zeros(tile.rows, jnp.float32), zeros, zeros
    largest, Z, heard, last = jax.lax.fori_loop(
        0, _tiles_seen(how, first, tile, count), step, carry
    )
    largest = jnp.broadcast_to(largest, (tile.rows,))
    return 4.0**-RAISED * (heard + last), 2.0**-RAISED * Z, largest


def _few(q_ref, k_ref, v_ref, w_ref, c_ref, s_ref, out, total, *, how, tile, count):
    """One tile of queries against all keys in a few coordinates, one line of memory for each.

    Sums stay spread over the tile until the end: nothing is added across threads on the way.
    """
    first = pl.program_id(0) * tile.rows
    here = pl.ds(first, tile.rows)
    c, d, e = c_ref[0] * LOG2E, q_ref.shape[0], v_ref.shape[0]
    q = [q_ref[line, here] * c for line in range(d)]

    def logits(number, offset):
        keys = pl.ds(number * tile.columns, tile.columns)
        S = w_ref[keys][None, :] - offset[:, None]
        for line in range(d):
            S = S + q[line][:, None] * k_ref[line, keys][None, :]
        values = [v_ref[line, keys][None, :] for line in range(e)]
        return _visible(how, S, first, number * tile.columns), values

    def peaked(number, carry):
        top, Z, heard = carry
        S, values = logits(number, top)
        E = jnp.exp2(S)
        return top, Z + E, [total + E * value for total, value in zip(heard, values)]

    def step(number, carry):
        top, Z, heard = carry
        S, values = logits(number, jnp.zeros_like(top))
        new = jnp.maximum(top, jnp.max(S, axis=1))
        E, fade = jnp.exp2(S - new[:, None]), jnp.exp2(top - new)[:, None]
        return new, fade * Z + E, [fade * total + E * value for total, value in zip(heard, values)]

    own = sum(q[line] * q_ref[line, here] for line in range(d))
    zeros = jnp.zeros((tile.rows, tile.columns), jnp.float32)
    start = (own if how.peaked else jnp.full(tile.rows, LEAST, jnp.float32), zeros, [zeros] * e)
    body = peaked if how.peaked else step
    top, Z, heard = jax.lax.fori_loop(0, _tiles_seen(how, first, tile, count), body, start)
    factor, total[here] = _shares(how, jnp.sum(Z, axis=1), top, s_ref[0] * LOG2E)
    for line in range(e):
        out[line, here] = factor * jnp.sum(heard[line], axis=1)

"""Fields of very many tokens without the matrix of all pairs: memory grows like n, not like n^2."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from tokenflock.dynamics._kernels import CEILING
from tokenflock.dynamics._matrices import at
from tokenflock.dynamics._padding import padded, widen
from tokenflock.dynamics._tiles import Listening, listen
from tokenflock.dynamics.dynamics import AttentionLaw, MeanField
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.spaces import Sphere

SIDE = 128  # points and tokens of one tile on a GPU


def by_rows(law: MeanField, t: Time, q: Points, x: Tokens, w: Weights, block: int) -> Points:
    """The field at blocks of points, one block after the other: exactly the law's own sum."""
    return jax.lax.map(lambda point: law.field(t, point[None], x, w)[0], q, batch_size=block)


def tiles(law: MeanField) -> bool:
    """Whether the field is the plain sum of logits and values, with nothing done to it after."""
    return type(law).field is AttentionLaw.field


def by_products(
    law: AttentionLaw, t: Time, q: Points, x: Tokens, w: Weights, interpret: bool = False
) -> Points:
    """The field by tiles where logits are inner products (`_tiles.listen`).

    Where unit vectors that attract listen to each other, each is its own largest logit, and no
    maximum is carried.
    """
    products = law.products(t, q, x)
    if products is None:
        raise ValueError("the logits of this law are no inner products")
    queries, keys, scale, shift = products
    values = law.values(t, x)

    def heard(peaked: bool) -> Points:
        how = Listening(divides=law.divides, peaked=peaked)
        return listen(queries, keys, values, w, scale, shift, how, interpret)[0]

    if q is not x or queries is not q or keys is not x or not isinstance(law.space, Sphere):
        return heard(False)
    attracts = (jnp.asarray(scale) >= 0) & jnp.all(w > 0)
    return jax.lax.cond(attracts, lambda: heard(True), lambda: heard(False))


def by_tiles(
    law: AttentionLaw, t: Time, q: Points, x: Tokens, w: Weights, interpret: bool = False
) -> Points:
    """The field by tiles of points and tokens on a GPU (Pallas): logits live on chip only, sums are
    carried along.

    The logits and values are the law's own; the maximum of the logits is carried along with the
    sums (online softmax).
    """
    m, d = q.shape
    rows, columns, wide = -(-m // SIDE) * SIDE, -(-x.shape[0] // SIDE) * SIDE, padded(d)
    q = jnp.pad(q, ((0, rows - m), (0, wide - d)))
    x = jnp.pad(x, ((0, columns - x.shape[0]), (0, wide - d)))
    w = jnp.pad(w, (0, columns - w.shape[0]))
    law = jax.tree.map(
        lambda leaf: at(leaf, t), law, is_leaf=callable
    )  # matrices that move stand still for one sum
    law = jax.tree.map(lambda leaf: widen(leaf, d, wide), law)
    arrays, static = eqx.partition(law, eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)
    call = pl.pallas_call(
        partial(_tile, tree=tree, static=static, count=len(leaves)),
        out_shape=jax.ShapeDtypeStruct((rows, wide), q.dtype),
        grid=(rows // SIDE,),
        interpret=interpret,
        **_parameters(),
    )
    with jax.default_matmul_precision("highest" if interpret else "TF32_TF32_F32_X3"):
        return call(q, x, w, jnp.reshape(jnp.asarray(t, q.dtype), (1,)), *leaves)[:m, :d]


def _parameters() -> dict:
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=4, num_stages=2)}


def _tile(q_ref, x_ref, w_ref, t_ref, *refs, tree, static, count: int):
    """One tile of points against all tokens."""
    law = eqx.combine(jax.tree.unflatten(tree, [ref[...] for ref in refs[:count]]), static)
    here = pl.program_id(0) * SIDE
    q, t = q_ref[pl.ds(here, SIDE), :], t_ref[0]

    def step(k, carry):
        top, Z, total = carry
        tokens = pl.ds(k * SIDE, SIDE)
        x, w = x_ref[tokens, :], w_ref[tokens]
        S = law.logits(t, q, x)
        new = (
            jnp.maximum(top, jnp.max(jnp.where(w > 0, S, -jnp.inf), axis=1)) if law.divides else top
        )
        E = w * jnp.exp(jnp.minimum(S - new[:, None], CEILING)) if law.divides else w * jnp.exp(S)
        scale = jnp.exp(top - new)
        return new, scale * Z + jnp.sum(E, axis=1), scale[:, None] * total + E @ law.values(t, x)

    start = (
        jnp.full(SIDE, -1e30 if law.divides else 0.0, q.dtype),
        jnp.zeros(SIDE, q.dtype),
        jnp.zeros(q.shape, q.dtype),
    )
    _, Z, total = jax.lax.fori_loop(0, x_ref.shape[0] // SIDE, step, start)
    refs[count][pl.ds(here, SIDE), :] = total / Z[:, None] if law.divides else total

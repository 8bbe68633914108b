"""The kernel of `hearing` as functions of JAX, for CPUs in single precision."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.shapes import Array, Points, Scalar, Tokens, Weights


@cache
def known(lanes: int) -> str:
    """What the names begin with by which XLA knows the kernel, in vectors of so many numbers."""
    from tokenflock.engines.native import hearing
    from tokenflock.engines.native.machine import handlers

    prefix = f"tokenflock.{lanes}."
    for name, function in handlers(str(hearing.module(lanes)), ("alike", "apart")).items():
        jax.ffi.register_ffi_target(prefix + name, jax.ffi.pycapsule(function), platform="cpu")
    return prefix


def attend(
    q: Points,
    k: Tokens,
    v: Tokens,
    w: Weights,
    c: Scalar | float,
    shift: Scalar | float,
    divides: bool,
    alike: bool,
) -> tuple[Points, Float[Array, " n"]]:
    """(heard (n, e), sum of the weights A_i (n,)) of one head, tokens as many as queries.

    `alike`: q, k and v are the same unit vectors and c >= 0.
    """
    from tokenflock.engines.native import machine

    prefix = known(machine.lanes())
    bound = 0.0 if alike else jnp.abs(c) * jnp.sqrt(_longest(q) * _longest(k))
    numbers = jnp.stack([jnp.asarray(a, q.dtype) for a in (c, shift, float(divides), bound)])
    shapes = (
        jax.ShapeDtypeStruct((q.shape[0], v.shape[1]), q.dtype),
        jax.ShapeDtypeStruct(q.shape[:1], q.dtype),
    )
    name, arrays = ("alike", (q,)) if alike else ("apart", (q, k, v))
    call = jax.ffi.ffi_call(prefix + name, shapes, vmap_method="broadcast_all")
    heard, total = call(*arrays, w, numbers)
    return heard, total


def _longest(x: Array) -> Array:
    """The largest square of the length of a row."""
    return jnp.max(jnp.sum(x * x, axis=-1))

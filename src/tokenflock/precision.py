"""Precision is chosen at the entry of a verb, in a scope, and never by a global switch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.errors import require

T = TypeVar("T")
DTYPES = ("float32", "float64")
LOW = 0xFFFFFFFF  # the lower 32 bits of a seed


@contextmanager
def precision(dtype: str):
    """Scope in which JAX may (float64) or may not (float32) use 64-bit numbers.

    Matrix products are exact to the precision: a GPU would else round their inputs to ten bits.
    """
    require(
        dtype in DTYPES, "dtype", "'float32' or 'float64'", repr(dtype), "write dtype='float64'"
    )
    with jax.enable_x64(dtype == "float64"), jax.default_matmul_precision("highest"):
        yield


def cast(tree: T, dtype: str) -> T:
    """Every real number and array of an object as a JAX array of `dtype`; all else stays as it is.

    Call it inside `precision(dtype)`. Numbers become traced values then, so a new beta compiles
    nothing anew.
    """

    def leaf(value):
        if isinstance(value, float) or (
            isinstance(value, (np.ndarray, np.floating, jax.Array))
            and np.issubdtype(value.dtype, np.floating)
        ):
            return jnp.asarray(value, dtype)
        return value

    return jax.tree.map(leaf, tree)


def root_key(seed: Any) -> jax.Array:
    """Return the key of a seed, the same in both precisions.

    Without 64-bit numbers `jax.random.key` keeps the lower 32 bits of a seed, so that 5 and
    5 + 2^32 would be one run. Below 2^32 the key is that of `jax.random.key`.

    >>> words = jax.random.key_data(root_key(5 + 2**32))
    >>> words.tolist(), jax.random.key_data(root_key(5)).tolist()
    ([1, 5], [0, 5])
    """
    if not isinstance(seed, (int, np.integer)) or seed <= LOW:
        return jax.random.key(seed)
    high, low = int(seed) >> 32, int(seed) & LOW
    words = jax.random.key_data(jax.random.key(0)).shape[-1]
    if words == 2:  # Threefry, whose key is the 64 bits of the seed
        return jax.random.wrap_key_data(jnp.array([high, low], jnp.uint32))
    return jax.random.fold_in(jax.random.key(low), high)

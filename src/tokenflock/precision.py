"""Precision is chosen at the entry of a verb, in a scope, and never by a global switch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.errors import require

T = TypeVar("T")
DTYPES = ("float32", "float64")


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

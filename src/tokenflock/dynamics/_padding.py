"""Sides of powers of two, as kernels on tensor cores want them. Zeros change no inner product."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

LEAST = 16  # the least side of a matrix product on tensor cores


def padded(size: int) -> int:
    """The power of two, at least 16, that holds `size`."""
    return max(LEAST, 1 << (size - 1).bit_length())


def widen(leaf: Any, d: int, wide: int, lead: int = 0) -> Any:
    """A matrix on R^d as a matrix on the padded space, zero on what was added.

    Its first `lead` axes and numbers stay.
    """
    if not hasattr(leaf, "ndim") or leaf.ndim - lead < 1:
        return leaf
    pads = [(0, 0)] * lead + [
        (0, wide - side if side == d else padded(side) - side) for side in leaf.shape[lead:]
    ]
    return jnp.pad(leaf, pads)

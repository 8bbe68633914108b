"""Random keys on the host: those of `jax.random`, bit for bit, without a compiler.

A key is two words. A number is folded into it by the hash Threefry-2x32 of Salmon, Moraes, Dror and
Shaw (2011) in twenty rounds, as JAX does.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np

from tokenflock.precision import LOW

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def threefry() -> bool:
    """Whether keys are made so here."""
    return cast(Any, jax.config).jax_default_prng_impl == "threefry2x32"


def keys_of(seed: int, ids: np.ndarray, purpose: int) -> np.ndarray:
    """The keys (systems, 2) of the systems (cell, repeat) in `ids` of a seed, for one purpose."""
    key = np.array([[seed >> 32, seed & LOW]], np.uint32)
    ids = np.asarray(ids, np.uint32)
    for word in (np.array([purpose], np.uint32), ids[:, 0], ids[:, 1]):
        key = folded(key, word)
    return key


def folded(keys: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Keys (k, 2) with a number folded into each, as `jax.random.fold_in`."""
    a, b = keys[:, 0], keys[:, 1]
    a, b, word = np.broadcast_arrays(a, b, word)
    schedule = (a, b, a ^ b ^ PARITY)
    x, y = a.copy(), word + b
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = x ^ y
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return np.stack([x, y], axis=1)

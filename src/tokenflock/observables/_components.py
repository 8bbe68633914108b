"""Clusters as connected components, in fixed shapes."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from tokenflock.observables.observable import cosines
from tokenflock.shapes import Tokens, Weights


def adjacent(x: Tokens, w: Weights, delta: float, radius: float | None) -> Bool[Array, "n n"]:
    """Pairs of tokens that count and are close: by cosine (>= 1 - delta), or within `radius` of each other in R^d."""
    if radius is None:
        close = cosines(x) >= 1 - delta
    else:
        square = jnp.sum(x * x, axis=-1)
        close = square[:, None] + square - 2 * (x @ x.T) <= radius**2
    itself = jnp.arange(w.shape[0])[:, None] == jnp.arange(w.shape[0])
    return (close | itself) & jnp.outer(w > 0, w > 0)


def components(near: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """For each token the first index of its connected component; -1 for tokens that are not near themselves.

    The reachability matrix is squared until it holds paths of any length. The partition does not depend on the order of
    tokens, and the same code runs on a chip that has matrix products and little else.
    """
    n = near.shape[0]
    reach = near.astype(jnp.float32)
    for _ in range(math.ceil(math.log2(max(n, 2)))):
        reach = (reach @ reach > 0).astype(jnp.float32)
    order = jnp.arange(n)
    first = jnp.min(jnp.where(reach > 0, order, n), axis=1)
    return jnp.where(first < n, first, -1)

"""Clusters as connected components, in fixed shapes."""

from __future__ import annotations

import math
from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.observables.observable import CosineObservable, cosines, pairs
from tokenflock.shapes import Array, Rows, Tokens, Weights
from tokenflock.shapes import counted as is_counted

# tokens, up to which products of whole matrices are as quick as anything, and run on any chip
FEW = 128
DOUBLINGS = 32  # of a path, which then is longer than tokens can be many


class ByClusters(CosineObservable):
    """What is told by clusters: connected components of the graph of close pairs.

    Two tokens are joined if their cosine is at least 1 - delta, or if they are within `radius`
    where that is given. The partition does not depend on the order of tokens.
    """

    delta: float = 1e-3
    "a pair is joined if its cosine is at least 1 - delta"
    radius: float | None = None
    "join by distance in R^d instead"

    def __check_init__(self) -> None:
        if self.radius is not None and concrete(self.radius):
            require(self.radius >= 0, "radius", "0 or more", self.radius)

    def resolution(self, epsilon: float) -> dict[str, float]:
        # squares of distances lose as many digits as cosines
        by_distance = self.radius is not None
        return {"radius": (128 * epsilon) ** 0.5} if by_distance else {"delta": 64 * epsilon}

    @property
    def by_cosines(self) -> bool:
        return self.radius is None

    def measure(self, x: Tokens, w: Weights) -> Array:
        if self.radius is None:
            return self.of_cosines(cosines(x), w)
        # from differences: |x|^2 + |y|^2 - 2 <x, y> loses the distance of long tokens
        gaps = jnp.sum((x[:, None] - x) ** 2, axis=-1)
        return self.of_labels(components(counted(gaps <= self.radius**2, w)))

    def of_cosines(self, G: Rows, w: Weights) -> Array:
        return self.of_labels(components(counted(1 - self.delta <= G, w)))

    def on_host(self, x: Array, w: Array) -> Array | None:
        """Few tokens in many frames, without a program that each number of frames compiles anew."""
        if self.radius is not None or x.shape[1] > FEW:
            return None
        tokens = np.asarray(x)
        square = np.sum(tokens * tokens, axis=-1, keepdims=True)
        u = tokens / np.sqrt(np.where(square > 0, square, 1))
        counts = np.asarray(w) > 0
        close = (1 - np.asarray(self.delta) <= u @ u.mT) | np.eye(u.shape[1], dtype=bool)
        labels = of_frames(close & counts[:, :, None] & counts[:, None, :])
        return jax.vmap(self.of_labels)(jnp.asarray(labels))

    @abstractmethod
    def of_labels(self, labels: Int[Array, " n"]) -> Array:
        """The value for the first index of each token's cluster, -1 where none counts."""


def counted(close: Bool[Array, "n n"], w: Weights) -> Bool[Array, "n n"]:
    """Close pairs among the tokens that count, each of which is close to itself."""
    order = jnp.arange(w.shape[0])
    return (close | (order[:, None] == order)) & pairs(w > 0)


def components(near: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """For each token the first index of its connected component.

    -1 for tokens that are not near themselves.
    """
    n = near.shape[0]
    return by_squaring(near) if is_counted(n) and n <= FEW else by_hooking(near)


def of_frames(near: np.ndarray) -> np.ndarray:
    """`components` of each of many frames (frame, n, n), on the host.

    Each token takes the least index that it or a neighbour has found, and then what was found
    there, until nothing changes.
    """
    frames, n = near.shape[:2]
    first = np.tile(np.append(np.arange(n, dtype=np.int32), n), (frames, 1))  # n stands for nobody
    moves = True
    while moves:
        least = np.where(near, first[:, None, :-1], n).min(axis=-1)
        found = np.take_along_axis(first, least, axis=1)
        moves = bool((found != first[:, :-1]).any())
        first[:, :-1] = found
    return np.where(first[:, :-1] < n, first[:, :-1], -1)


def by_squaring(near: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """The reachability matrix is squared until it holds paths of any length: matrix products and
    little else.
    """
    n = near.shape[0]
    reach = near.astype(jnp.float32)
    for _ in range(math.ceil(math.log2(max(n, 2)))):
        reach = (reach @ reach > 0).astype(jnp.float32)
    order = jnp.arange(n)
    first = jnp.min(jnp.where(reach > 0, order, n), axis=1)
    return jnp.where(first < n, first, -1)


def by_hooking(near: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """Each tree of tokens hooks onto the least tree it touches, and is flattened, until nothing
    moves: O(n^2) a round.
    """
    n = near.shape[0]
    order = jnp.arange(n)

    def hook(state):
        root, _ = state
        # the least root among those of a token's neighbours
        touched = jnp.min(jnp.where(near, root, n), axis=1)
        # only roots move: to the least that any token of their tree touches
        new = root.at[root].min(touched)
        if is_counted(n):
            for _ in range(math.ceil(math.log2(n))):
                new = new[new]
        else:
            new = jax.lax.fori_loop(0, DOUBLINGS, lambda _, new: new[new], new)
        return new, jnp.any(new != root)

    root, _ = jax.lax.while_loop(lambda state: state[1], hook, (order, jnp.asarray(True)))
    return jnp.where(jnp.diagonal(near), root, -1)

"""Tokens that start in groups."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.spaces.sphere import LONG, normalise
from tokenflock.starts.start import Start, check_counts


class Clusters(Start):
    """n tokens in k groups, as equal in size as can be, about k centres: given ones, or uniform.

    Token i belongs to group i mod k and lies at centre + spread * Gaussian, normalised.

    >>> Clusters(n=30, d=3, k=3, spread=0.05).shape
    (30, 3)
    >>> opposite = Clusters(n=8, d=3, k=2, spread=0.05, centres=[[0, 0, 1], [0, 0, -1]])
    """

    n: int = 32
    "number of tokens"
    d: int = 3
    "dimension of the space around the sphere"
    k: int = 3
    "number of groups"
    spread: float = 0.05
    "standard deviation of each coordinate about the centre"
    centres: Array | None = None
    "the centres, (k, d), of lengths from 1e-15 to 1e15; uniform unless given"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)
        require(1 <= self.k <= self.n, "k", f"between 1 and n = {self.n}", self.k)
        require(self.spread >= 0, "spread", "0 or more", self.spread)
        if self.centres is None:
            return
        shape = np.shape(self.centres)
        wanted = f"an array of shape (k, d) = ({self.k}, {self.d})"
        instead = f"write k={shape[0]}, d={shape[1]}" if len(shape) == 2 else ""
        require(shape == (self.k, self.d), "centres", wanted, f"shape {shape}", instead)
        lengths = np.linalg.norm(np.asarray(self.centres), axis=1)
        # tokens are drawn in float32, which does not hold the squares of others
        require(
            bool(((lengths >= 1 / LONG) & (lengths <= LONG)).all()),
            "centres",
            f"of lengths from {1 / LONG:g} to {LONG:g}, without zero rows",
            f"lengths {lengths.tolist()!r:.60}",
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        where, around = jax.random.split(key)
        if self.centres is None:
            centres = normalise(jax.random.normal(where, (self.k, self.d)))
        else:
            centres = normalise(jnp.asarray(self.centres, jnp.float32))
        noise = self.spread * jax.random.normal(around, self.shape)
        return normalise(centres[jnp.arange(self.n) % self.k] + noise)

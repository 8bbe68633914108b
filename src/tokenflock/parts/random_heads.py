"""Heads of a fresh model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._matrices import period_of
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.given_heads import GivenHeads
from tokenflock.parts.heads import HeadMatrices, Heads
from tokenflock.precision import precision, root_key
from tokenflock.shapes import Time

LETTERS = "QKVO"


class RandomHeads(Heads):
    """Heads of a fresh model: Gaussian matrices, drawn once or anew in every period.

        Q, K: variance scale^2 / sqrt(m),   V: scale^2 / d,   O: scale^2 / (heads m)

    For tokens of length one and beta = 1 the logits then have variance one and values keep
    lengths, as in a model that draws every matrix with variance 1 / (what goes in), reads tokens of
    length sqrt(d) and divides logits by sqrt(m). With scale = 0.02 sqrt(d) the matrices are those
    of GPT-2. Matrices that `letters` does not name are the identity. The k-th period draws from the
    k-th key of the seed, so a run may be of any length.

    >>> RandomHeads(4).draw(8).Q.shape
    (4, 2, 8)
    """

    count: int = 1
    "how many"
    size: int | None = None
    "m, the width of a head; d / heads unless given"
    scale: float = 1.0
    "size of the matrices"
    letters: str = "QKVO"
    "which matrices are random"
    period: float | None = None
    "draw new matrices after this much time; the step of a layer map makes every layer fresh"
    seed: int = 0
    "of the matrices"

    def __check_init__(self) -> None:
        require(1 <= self.count <= 10_000, "heads", "1 or more, at most 10,000", self.count)
        size = 1 if self.size is None else self.size
        require(1 <= size <= 100_000, "heads.size", "1 or more, at most 100,000", self.size)
        known = self.letters != "" and set(self.letters) <= set(LETTERS)
        require(known, "heads.letters", "some of Q, K, V, O", repr(self.letters))
        if self.period is not None and concrete(self.period):
            require(self.period > 0, "heads.period", "positive", self.period)

    @property
    def number(self) -> int:
        return self.count

    def matrices(self, t: Time, d: int) -> HeadMatrices:
        key = root_key(self.seed)
        keys = jax.random.split(jax.random.fold_in(key, period_of(t, self.period)), 4)
        dtype = jnp.result_type(jnp.asarray(self.scale), jnp.float32)
        shapes = self._shapes(d)

        def matrix(letter: str):
            shape, variance = shapes[letter]
            G = jax.random.normal(keys[LETTERS.index(letter)], shape, jnp.float32)
            return self.scale * jnp.asarray(G, dtype) * variance**0.5

        drawn = {letter: matrix(letter) for letter in LETTERS if letter in self.letters}
        return HeadMatrices(**drawn)

    def _shapes(self, d: int) -> dict[str, tuple[tuple[int, int, int], float]]:
        """Shape and variance of each matrix: square where its partner is the identity."""
        m = max(1, d // self.count) if self.size is None else self.size
        ask = m if {"Q", "K"} <= set(self.letters) else d
        say = m if {"V", "O"} <= set(self.letters) else d
        rows = (self.count, ask, d), ask**-0.5
        values = (self.count, say, d), 1 / d
        return {
            "Q": rows,
            "K": rows,
            "V": values,
            "O": ((self.count, d, say), 1 / (self.count * say)),
        }

    def draw(self, d: int, t: float = 0.0) -> GivenHeads:
        """The heads at time t on R^d, as numbers."""
        with precision("float64"):
            told = self.matrices(t, d)
            Q, K, V, O = (None if M is None else np.asarray(M, float) for M in told[:4])
        return GivenHeads(Q, K, V, O)

    @property
    def isotropic(self) -> bool:
        return False

    @property
    def keeps_cones(self) -> bool:
        return not {"V", "O"} & set(self.letters)

"""Independent uniform tokens on the sphere."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float, Key

from tokenflock.spaces.sphere import normalise
from tokenflock.starts.start import Start, check_counts


class Uniform(Start):
    """Independent tokens, uniform on the sphere S^(d-1).

    >>> Uniform(n=32, d=2)
    Uniform(n=32, d=2)
    """

    n: int = 32
    "number of tokens"
    d: int = 2
    "dimension of the space around the sphere; 2 is the circle"

    def __check_init__(self) -> None:
        check_counts(self.n, self.d)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return normalise(jax.random.normal(key, self.shape))

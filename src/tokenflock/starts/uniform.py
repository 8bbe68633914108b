"""Independent uniform tokens on the sphere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.shapes import Array
from tokenflock.spaces.sphere import normalise
from tokenflock.starts.start import Start, check_counts


class Uniform(Start):
    """Independent tokens, uniform on the sphere S^(d-1): the rows of a Gaussian matrix G (n, d),
    normalised.

    For d >= 2n they are drawn by Bartlett's decomposition G = L U, with independent factors: U (n,
    d) a uniform orthonormal frame, L (n, n) lower triangular, standard normal below the diagonal,
    L_ii chi with d - i degrees of freedom, i = 0 ... n-1. The normalised rows of L are the tokens
    in the frame U, so whoever needs inner products only need not draw U.

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
        if not self.spans:
            return normalise(jax.random.normal(key, self.shape))
        return self.in_span(key) @ _frame(jax.random.fold_in(key, 1), self.n, self.d)

    @property
    def spans(self) -> bool:
        return self.d >= 2 * self.n

    def in_span(self, key: Key[Array, ""]) -> Float[Array, "n n"]:
        return normalise(_bartlett(jax.random.fold_in(key, 0), self.n, self.d))


def _bartlett(key: Key[Array, ""], n: int, d: int) -> Float[Array, "n n"]:
    """L, lower triangular, with L L^T distributed as G G^T for a Gaussian matrix G (n, d)."""
    below, diagonal = jax.random.split(key)
    chi = jnp.sqrt(jax.random.chisquare(diagonal, d - jnp.arange(n, dtype=float)))
    return jnp.tril(jax.random.normal(below, (n, n)), -1) + jnp.diag(chi)


def _frame(key: Key[Array, ""], n: int, d: int) -> Float[Array, "n d"]:
    """U of a Gaussian G = L U: orthonormal rows, uniform among all such. Done twice, which leaves
    errors of rounding alone.
    """
    U = jax.random.normal(key, (n, d))
    for _ in range(2):
        U = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(U @ U.T), U, lower=True)
    return U

"""A smooth count of the dimensions that tokens use."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr

from tokenflock.observables.observable import Observable
from tokenflock.shapes import Array, Scalar, Tokens, Weights
from tokenflock.spaces.sphere import normalise


class EffectiveRank(Observable):
    """Exponential of the entropy of the eigenvalues of sum_i w_i x_i x_i^T: 1 at consensus, d for
    uniform tokens.
    """

    on_chip: ClassVar[bool] = False  # no eigenvalues there

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        return _perplexity(jnp.linalg.eigvalsh(_gram(x, w)))

    def on_host(self, x: Array, w: Array) -> Array:
        """Many frames at once: LAPACK gives eigenvalues without vectors, XLA only with them, four
        times as slowly.
        """
        gram = np.asarray(jax.jit(_gram)(x, w))
        lost = ~np.all(np.isfinite(gram), axis=(1, 2))
        sound = np.where(lost[:, None, None], 0, gram)
        return jnp.where(lost, jnp.nan, jax.jit(_perplexity)(np.linalg.eigvalsh(sound)))


def _gram(x: Tokens, w: Weights) -> Array:
    """The smaller of the two matrices that have the eigenvalues."""
    u = jnp.sqrt(w)[..., None] * normalise(x)
    return u @ u.mT if u.shape[-2] <= u.shape[-1] else u.mT @ u


def _perplexity(eigenvalues: Array) -> Array:
    p = jnp.maximum(eigenvalues, 0)
    return jnp.exp(jnp.sum(entr(p / jnp.sum(p, axis=-1, keepdims=True)), axis=-1))

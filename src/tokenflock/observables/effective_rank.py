"""A smooth count of the dimensions that tokens use."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax.scipy.special import entr

from tokenflock.observables.observable import Observable
from tokenflock.shapes import Scalar, Tokens, Weights
from tokenflock.spaces.sphere import normalise


class EffectiveRank(Observable):
    """Exponential of the entropy of the eigenvalues of sum_i w_i x_i x_i^T: 1 at consensus, d for uniform tokens."""

    on_chip: ClassVar[bool] = False  # no eigenvalues there

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        u = jnp.sqrt(w)[:, None] * normalise(x)
        small = u @ u.T if u.shape[0] <= u.shape[1] else u.T @ u
        p = jnp.maximum(jnp.linalg.eigvalsh(small), 0)
        return jnp.exp(jnp.sum(entr(p / jnp.sum(p))))

"""The lengths of tokens."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from tokenflock.observables.observable import Observable
from tokenflock.shapes import Tokens, Weights


class Radius(Observable):
    """Length |x_i| of each token: 1 on the sphere, growing under Pre-LN and Peri-LN."""

    dims: ClassVar[tuple[str, ...]] = ("particle",)

    def measure(self, x: Tokens, w: Weights) -> Weights:
        return jnp.sqrt(jnp.sum(x * x, axis=-1))

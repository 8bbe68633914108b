"""Stillness."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.parts.noise import Noise
from tokenflock.shapes import Array, Tokens


class NoNoise(Noise):
    """No noise.

    >>> NoNoise().there
    False
    """

    @property
    def there(self) -> bool:
        return False

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        return jnp.zeros_like(x)

    @property
    def keeps_cones(self) -> bool:
        return True

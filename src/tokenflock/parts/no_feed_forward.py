"""No feed-forward part."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.parts.token_map import TokenMap
from tokenflock.shapes import Points, Time


class NoFeedForward(TokenMap):
    """No feed-forward part: attention only.

    >>> NoFeedForward().there
    False
    """

    @property
    def there(self) -> bool:
        return False

    def think(self, t: Time, x: Points) -> Points:
        return jnp.zeros_like(x)

    @property
    def isotropic(self) -> bool:
        return True

    @property
    def keeps_cones(self) -> bool:
        return True

"""Layer norm and RMS norm, with the numbers that a model has learned."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.frozen import Frozen
from tokenflock.shapes import Array


class LayerNorm(Frozen):
    """Layer norm: gain (x - mean) / sqrt(variance + epsilon) + shift, over the coordinates of a
    token; RMS norm where it is not `centred`: gain x / sqrt(mean x^2 + epsilon) + shift.

    >>> import jax.numpy as jnp
    >>> LayerNorm(gain=[1.0, 1.0], centred=False, epsilon=0.0)(jnp.array([3.0, 3.0])).tolist()
    [1.0, 1.0]
    """

    gain: Array
    "(d,)"
    shift: Array | None = None
    "(d,)"
    epsilon: float = 1e-12
    "added to the variance"
    centred: bool = True
    "subtract the mean (layer norm) or not (RMS norm)"

    def __call__(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        centred = x - x.mean(axis=-1, keepdims=True) if self.centred else x
        scale = jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + self.epsilon)
        normed = self.gain * centred * scale
        return normed if self.shift is None else normed + self.shift

    @property
    def radius(self) -> float:
        """The length of a typical token that comes out of it: sqrt(sum of gain^2 + shift^2)."""
        shift = 0.0 if self.shift is None else np.sum(np.square(self.shift))
        return float(np.sqrt(np.sum(np.square(self.gain)) + shift))

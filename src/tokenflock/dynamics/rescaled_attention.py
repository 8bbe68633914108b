"""Attention on R^d in the frame that moves with e^{tV}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics._matrices import act, at, replaced
from tokenflock.dynamics._qkv import QKV
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import UserError, require
from tokenflock.shapes import Points, Rows, Time, Tokens, Weights
from tokenflock.spaces import Euclidean, Space

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block

_FRAME = "its frame is e^{tV}"


class RescaledAttention(QKV, MeanField):
    """Pure attention on R^d seen in the rescaled frame z = e^{-tV} x, where clusters appear.

        dz_i/dt = sum_j A_ij V (z_j - z_i),   A_ij = w_j e^{beta <Q e^{tV} z_i, K e^{tV} z_j>} / Z_i

    Source: (9.2) and (9.3) of arXiv 2312.10794, arXiv 2305.05465.

    >>> RescaledAttention(V=1.0).space
    Euclidean()
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2023emergence", "geshkovski2025perspective")

    def __check_init__(self) -> None:
        require(not callable(self.V), "RescaledAttention.V", "constant", "a path", _FRAME)

    @property
    def space(self) -> Space:
        return Euclidean()

    def original(self, t: Time, z: Points) -> Points:
        """x = e^{tV} z."""
        V = at(self.V, t)  # never a function of time
        if V is None or np.ndim(V) == 0:
            return jnp.exp(t * (1.0 if V is None else V)) * z
        return act(jax.scipy.linalg.expm(t * V), z)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        return softmax(self.logits(t, self.original(t, q), self.original(t, x)), w)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.values(t, self.attention(t, q, x, w) @ x - q)

    def with_matrices(self, Q: Any, V: Any) -> RescaledAttention:
        still = not callable(V)
        require(still, "matrices.period", "left out for RescaledAttention", "one", _FRAME)
        return replaced(self, Q, V)

    def as_block(self) -> Block:
        raise UserError(
            "RescaledAttention is no Block: it is PureAttention, seen in a frame that moves; take"
            " PureAttention(...).as_block()"
        )

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> RescaledAttention:
        G = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
        return cls(beta=0.7, V=0.3 * G)

"""How random matrices enter attention: which kernel, which value matrix, how often drawn."""

from __future__ import annotations

import enum

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.dynamics._matrices import Switching
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.frozen import Frozen
from tokenflock.matrices.ginibre import Ginibre
from tokenflock.matrices.matrix import MatrixLaw
from tokenflock.shapes import Array


class Per(enum.Enum):
    """How often matrices are drawn anew."""

    SYSTEM = "system"
    CELL = "cell"
    RUN = "run"


class Value(enum.Enum):
    """What V is, given the kernel matrix B = Q^T K."""

    IDENTITY = "identity"  # V = I
    # V = G / sqrt(d), G Gaussian and independent of B: spectral radius 1 for large d
    GINIBRE = "ginibre"
    WISHART = "wishart"  # V = G G^T / sqrt(d), G Gaussian: positive semi-definite
    KERNEL = "kernel"  # V = B^T / its scale: rows x_j B, as the published code multiplies
    MINUS_KERNEL = "minus-kernel"  # V = -B^T / its scale


class RandomMatrices(Frozen):
    """Attention with logits beta <x_i, B x_j> and values V, drawn at random, and drawn anew every
    `period` if you like: for every law that has Q, K, V, each head by itself.

    Random values with Q = K = I are `RandomMatrices(Identity(), Value.GINIBRE)`; with `period` the
    step h of the layer map and scale = 1 / sqrt(h) they are a noise that is common to all tokens.

    Figure 5 of arXiv 2312.10794: (a) Ginibre, Ginibre (its published code has Wishart, whose front
    is elsewhere); (b) Wigner, Wishart; (c) Ginibre, kernel; (d) Wigner, kernel.

    >>> RandomMatrices(kernel=Ginibre(), value=Value.KERNEL)
    RandomMatrices(kernel=Ginibre(), value=KERNEL, per=SYSTEM, period=None, scale=1.0)
    """

    kernel: MatrixLaw = Ginibre()
    "law of B = Q^T K"
    value: Value = Value.IDENTITY
    "identity, ginibre, wishart, kernel or minus-kernel"
    per: Per = Per.SYSTEM
    "drawn for each system, each cell or once for the run"
    period: float | None = None
    "draw new matrices after this much time: a new layer"
    scale: float = 1.0
    "by what random values are multiplied"

    def __check_init__(self) -> None:
        require(
            self.period is None or self.period > 0,
            "period",
            "positive",
            self.period,
            "write e.g. period=0.1",
        )

    def layers(self, t: float) -> int:
        """How many sets of matrices a run up to time t needs."""
        return 1 if self.period is None else max(1, -int(-t // self.period))

    def draw(
        self, key: Key[Array, ""], d: int, layers: int, heads: int | None = None
    ) -> tuple[Float[Array, "l *h d d"], Float[Array, "l *h d d"] | None]:
        """(B, V) of each layer, and of each head where `heads` says how many; V is None for the
        identity.
        """
        count = layers * (heads or 1)
        B, V = jax.vmap(lambda key: self._pair(key, d))(jax.random.split(key, count))
        if heads is None:
            return B, V
        shape = (layers, heads, d, d)
        return B.reshape(shape), None if V is None else V.reshape(shape)

    def _pair(
        self, key: Key[Array, ""], d: int
    ) -> tuple[Float[Array, "d d"], Float[Array, "d d"] | None]:
        first, second = jax.random.split(key)
        B = self.kernel.draw(first, d)
        if self.value is Value.IDENTITY:
            return B, None
        if self.value in (Value.GINIBRE, Value.WISHART):
            G = jax.random.normal(second, (d, d))
            return B, self.scale * (G if self.value is Value.GINIBRE else G @ G.T) / d**0.5
        sign = self.scale if self.value is Value.KERNEL else -self.scale
        return B, sign * B.T / self.kernel.value_scale(d)

    def fill(
        self, dynamics: Dynamics, B: Float[Array, "l *h d d"], V: Float[Array, "l *h d d"] | None
    ) -> Dynamics:
        """The law with these matrices in it.

        <x_i, B x_j> = <B^T x_i, x_j>: Q = B^T, K = I.
        """
        Q = jnp.swapaxes(B, -1, -2)
        return dynamics.with_matrices(self._in_time(Q), None if V is None else self._in_time(V))

    def _in_time(self, layers: Float[Array, "l *h d d"]) -> Float[Array, "*h d d"] | Switching:
        """The matrix of the only layer, or the path through all of them."""
        return layers[0] if self.period is None else Switching(layers, self.period)

"""How random matrices enter attention: which kernel, which value matrix, how often drawn."""

from __future__ import annotations

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from tokenflock.dynamics._matrices import Switching
from tokenflock.dynamics.attention import Attention
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
    `period` if you like.

    Figure 5 of arXiv 2312.10794: (a) Ginibre, Ginibre (its published code has Wishart, whose front
    is elsewhere); (b) Wigner, Wishart; (c) Ginibre, kernel; (d) Wigner, kernel.

    >>> RandomMatrices(kernel=Ginibre(), value=Value.KERNEL)
    RandomMatrices(kernel=Ginibre(), value=KERNEL, per=SYSTEM, period=None)
    """

    kernel: MatrixLaw = Ginibre()
    "law of B = Q^T K"
    value: Value = Value.IDENTITY
    "identity, ginibre, wishart, kernel or minus-kernel"
    per: Per = Per.SYSTEM
    "drawn for each system, each cell or once for the run"
    period: float | None = None
    "draw new matrices after this much time: a new layer"

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
        self, key: Key[Array, ""], d: int, layers: int
    ) -> tuple[Float[Array, "l d d"], Float[Array, "l d d"] | None]:
        """(B, V) of each layer; V is None for the identity."""
        B, V = jax.vmap(lambda key: self._pair(key, d))(jax.random.split(key, layers))
        return B, V

    def _pair(
        self, key: Key[Array, ""], d: int
    ) -> tuple[Float[Array, "d d"], Float[Array, "d d"] | None]:
        first, second = jax.random.split(key)
        B = self.kernel.draw(first, d)
        if self.value is Value.IDENTITY:
            return B, None
        if self.value in (Value.GINIBRE, Value.WISHART):
            G = jax.random.normal(second, (d, d))
            return B, (G if self.value is Value.GINIBRE else G @ G.T) / d**0.5
        return B, (B.T if self.value is Value.KERNEL else -B.T) / self.kernel.value_scale(d)

    def fill(
        self, dynamics: Dynamics, B: Float[Array, "l d d"], V: Float[Array, "l d d"] | None
    ) -> Dynamics:
        """The attention dynamics with these matrices in it.

        <x_i, B x_j> = <B^T x_i, x_j>: Q = B^T, K = I.
        """
        require(
            isinstance(dynamics, Attention),
            "dynamics",
            "Attention, to take random matrices",
            type(dynamics).__name__,
        )
        Q = jnp.swapaxes(B, -1, -2)
        matrices = self._in_time(Q), None if V is None else self._in_time(V)
        return eqx.tree_at(
            lambda law: (law.Q, law.V), dynamics, matrices, is_leaf=lambda leaf: leaf is None
        )

    def _in_time(self, layers: Float[Array, "l d d"]) -> Float[Array, "d d"] | Switching:
        """The matrix of the only layer, or the path through all of them."""
        return layers[0] if self.period is None else Switching(layers, self.period)

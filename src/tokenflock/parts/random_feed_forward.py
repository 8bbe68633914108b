"""The feed-forward part of a fresh model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._matrices import period_of
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.parts.token_map import TokenMap
from tokenflock.parts.two_layers import TwoLayers
from tokenflock.precision import precision, root_key
from tokenflock.shapes import Array, Points, Time


class RandomFeedForward(TokenMap):
    """The feed-forward part of a fresh model: W sigma(A x), Gaussian matrices, drawn once or anew
    in every period.

        A: variance scale^2,   W: scale^2 / (d m),   m = `hidden` d

    For tokens of length one that is what a model does that draws every matrix with variance 1 /
    (what goes in) and reads tokens of length sqrt(d).

    >>> RandomFeedForward("tanh").draw(8).W.shape
    (8, 32)
    """

    activation: Activation = Activation.GELU
    "relu, tanh, gelu, exact-gelu, silu or identity"
    hidden: int = 4
    "hidden coordinates for each coordinate of a token"
    scale: float = 1.0
    "size of the matrices"
    period: float | None = None
    "draw new matrices after this much time; the step of a layer map makes every layer fresh"
    seed: int = 0
    "of the matrices"

    def __check_init__(self) -> None:
        require(1 <= self.hidden <= 10_000, "feed_forward.hidden", "from 1 to 10,000", self.hidden)
        if self.period is not None and concrete(self.period):
            require(self.period > 0, "feed_forward.period", "positive", self.period)

    def matrices(self, t: Time, d: int) -> tuple[Array, Array]:
        """(W, A) at time t on R^d."""
        key = jax.random.fold_in(root_key(self.seed), 7)
        outer, inner = jax.random.split(jax.random.fold_in(key, period_of(t, self.period)))
        m, dtype = self.hidden * d, jnp.result_type(jnp.asarray(self.scale), jnp.float32)
        W = jnp.asarray(jax.random.normal(outer, (d, m), jnp.float32), dtype) / (d * m) ** 0.5
        A = jnp.asarray(jax.random.normal(inner, (m, d), jnp.float32), dtype)
        return self.scale * W, self.scale * A

    def think(self, t: Time, x: Points) -> Points:
        W, A = self.matrices(t, x.shape[-1])
        return self.activation(x @ A.T) @ W.T

    def draw(self, d: int, t: float = 0.0) -> TwoLayers:
        """The part at time t on R^d, as numbers."""
        with precision("float64"):
            W, A = (np.asarray(M, float) for M in self.matrices(t, d))
        return TwoLayers(W=W, A=A, activation=self.activation)

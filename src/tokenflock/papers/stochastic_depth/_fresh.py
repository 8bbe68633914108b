"""Attention and feed-forward parts whose weights are fresh in every layer, as noise of a `Block`.

The same as `RandomHeads` and `RandomFeedForward` with a period of one layer, but drawn from the key
of each system, so that an ensemble averages over them.
"""

from __future__ import annotations

import jax
from jaxtyping import Key

from tokenflock.dynamics.neural_ode import Activation
from tokenflock.parts.noise import Noise
from tokenflock.shapes import Array, Tokens


class FreshHead(Noise):
    """V A(x) x with Q, K, V drawn anew: logits sharpness <Q x_i, K x_j> of variance sharpness^2, V
    with entries of variance 1/d.
    """

    sharpness: float = 1.0  # beta of the fresh logits

    @property
    def replaces_drift(self) -> bool:
        return True

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        d = x.shape[-1]
        Q, K, V = jax.random.normal(key, (3, d, d), x.dtype)
        logits = self.sharpness * (x @ Q.T) @ (x @ K.T).T / d**0.5
        return jax.nn.softmax(logits, axis=-1) @ x @ V.T / d**0.5


class FreshFeedForward(Noise):
    """W sigma(A x) with W and A drawn anew: A with entries of variance 1, W of variance 1/(d m)."""

    activation: Activation = Activation.TANH  # relu, tanh, ...
    hidden: int = 4  # m / d

    @property
    def replaces_drift(self) -> bool:
        return True

    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        d = x.shape[-1]
        m = self.hidden * d
        outer, inner = jax.random.split(key)
        A = jax.random.normal(inner, (m, d), x.dtype)
        W = jax.random.normal(outer, (d, m), x.dtype) / (d * m) ** 0.5
        return self.activation(x @ A.T) @ W.T

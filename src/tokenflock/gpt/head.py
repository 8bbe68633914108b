"""Rung 2, one head of attention: each token looks back at those before it."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp

from tokenflock.gpt.language import LanguageModel, embed, even, fresh
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array


class Head(eqx.Module):
    """Causal attention of one head: the force of the dynamics `Causal` with beta = 1/sqrt(m),
    without its projection.

    y_t = Z_t^{-1} sum_{s <= t} e^{<Q x_t, K x_s> / sqrt(m)} V x_s
    """

    Q: Array  # (width, m), for tokens in rows: x @ Q
    K: Array  # (width, m)
    V: Array  # (width, m)

    def __init__(self, width: int, m: int, key: Array):
        self.Q, self.K, self.V = (even(part, width, m) for part in jax.random.split(key, 3))

    def __call__(self, x: Array) -> Array:
        q, k, v = x @ self.Q, x @ self.K, x @ self.V  # (batch, time, m) each
        S = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])  # (batch, time, time): row t, column s
        S = jnp.where(jnp.tri(x.shape[1], dtype=bool), S, -jnp.inf)  # t sees s only if s <= t
        return jax.nn.softmax(S, axis=2) @ v  # (batch, time, m)


class OneHead(LanguageModel):
    """Token and place become a vector, one head mixes the vectors, and a matrix reads the logits
    off.

    x_t = token[token_t] + place[t],   logits_t = (attention x)_t readout
    """

    token: Array  # (vocab, width)
    place: Array  # (context, width)
    head: Head
    readout: Array  # (width, vocab)

    def __init__(self, shape: Shape, key: Array):
        keys = jax.random.split(key, 4)
        self.token = fresh(keys[0], shape.vocab, shape.width, scale=1.0)
        self.place = fresh(keys[1], shape.context, shape.width, scale=1.0)
        self.head = Head(shape.width, shape.width, keys[2])
        self.readout = even(keys[3], shape.width, shape.vocab)

    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        return self.states(tokens)[-1] @ self.readout  # (batch, time, vocab)

    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (layer, batch, time, width)."""
        x = embed(self.token, tokens) + self.place[: tokens.shape[1]]  # (batch, time, width)
        return jnp.stack([x, self.head(x)])

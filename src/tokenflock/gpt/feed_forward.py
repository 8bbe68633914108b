"""Rung 4, the feed-forward part: after looking, each token thinks by itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tokenflock.gpt.head import Head
from tokenflock.gpt.language import LanguageModel, embed, even, fresh
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array


class Thinking(LanguageModel):
    """Several heads, then a perceptron with one hidden layer on every token alone.

    y = [head_1(x), ..., head_H(x)] mix,   z_t = gelu(y_t up) down
    """

    token: Array  # (vocab, width)
    place: Array  # (context, width)
    heads: tuple[Head, ...]
    mix: Array  # (width, width)
    up: Array  # (width, 4 width)
    down: Array  # (4 width, width)
    readout: Array  # (width, vocab)

    def __init__(self, shape: Shape, key: Array):
        keys, d = jax.random.split(key, 7), shape.width
        self.token = fresh(keys[0], shape.vocab, d, scale=1.0)
        self.place = fresh(keys[1], shape.context, d, scale=1.0)
        self.heads = tuple(
            Head(d, d // shape.heads, head_key)
            for head_key in jax.random.split(keys[2], shape.heads)
        )
        self.mix, self.readout = even(keys[3], d, d), even(keys[4], d, shape.vocab)
        self.up, self.down = even(keys[5], d, 4 * d), even(keys[6], 4 * d, d)

    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        return self.states(tokens)[-1] @ self.readout  # (batch, time, vocab)

    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (layer, batch, time, width)."""
        x = embed(self.token, tokens) + self.place[: tokens.shape[1]]  # (batch, time, width)
        # (batch, time, width)
        y = jnp.concatenate([head(x) for head in self.heads], axis=2) @ self.mix
        z = jax.nn.gelu(y @ self.up) @ self.down  # (batch, time, 4 width) inside
        return jnp.stack([x, z])

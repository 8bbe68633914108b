"""Rung 3, several heads at once: each looks for something else."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tokenflock.gpt.head import Head
from tokenflock.gpt.language import LanguageModel, embed, even, fresh
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array


class ManyHeads(LanguageModel):
    """Heads of width m = width / heads side by side; their outputs are concatenated and mixed by
    one matrix.

    y_t = [head_1(x)_t, ..., head_H(x)_t] mix
    """

    token: Array  # (vocab, width)
    place: Array  # (context, width)
    heads: tuple[Head, ...]
    mix: Array  # (width, width)
    readout: Array  # (width, vocab)

    def __init__(self, shape: Shape, key: Array):
        keys = jax.random.split(key, 5)
        self.token = fresh(keys[0], shape.vocab, shape.width, scale=1.0)
        self.place = fresh(keys[1], shape.context, shape.width, scale=1.0)
        m = shape.width // shape.heads
        self.heads = tuple(
            Head(shape.width, m, head_key) for head_key in jax.random.split(keys[2], shape.heads)
        )
        self.mix = even(keys[3], shape.width, shape.width)
        self.readout = even(keys[4], shape.width, shape.vocab)

    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        return self.states(tokens)[-1] @ self.readout  # (batch, time, vocab)

    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (layer, batch, time, width)."""
        x = embed(self.token, tokens) + self.place[: tokens.shape[1]]  # (batch, time, width)
        # (batch, time, width)
        y = jnp.concatenate([head(x) for head in self.heads], axis=2) @ self.mix
        return jnp.stack([x, y])

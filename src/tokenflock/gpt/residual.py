"""Rung 5, residual connections and layer norm: now layers can be stacked."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from tokenflock.gpt.fast import layer_norm
from tokenflock.gpt.head import Head
from tokenflock.gpt.language import LanguageModel, embed, fresh
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array


class ResidualLayer(eqx.Module):
    """A residual layer, pre-norm: attention and perceptron move a token; they do not replace it.

    x <- x + heads(norm x) mix,   x <- x + gelu(norm(x) up) down
    """

    heads: tuple[Head, ...]
    mix: Array  # (width, width)
    up: Array  # (width, 4 width)
    down: Array  # (4 width, width)
    gains: Array  # (2, width)

    def __init__(self, shape: Shape, key: Array):
        keys, d = jax.random.split(key, 4), shape.width
        small = 0.02 / (2 * shape.depth) ** 0.5  # what a residual adds up over the layers
        self.heads = tuple(
            Head(d, d // shape.heads, head_key)
            for head_key in jax.random.split(keys[0], shape.heads)
        )
        self.mix, self.down = (
            fresh(keys[1], d, d, scale=small),
            fresh(keys[2], 4 * d, d, scale=small),
        )
        self.up, self.gains = fresh(keys[3], d, 4 * d), jnp.ones((2, d))

    def __call__(self, x: Array) -> Array:
        y = layer_norm(x, self.gains[0])
        # (batch, time, width)
        x = x + jnp.concatenate([head(y) for head in self.heads], axis=2) @ self.mix
        return x + jax.nn.gelu(layer_norm(x, self.gains[1]) @ self.up) @ self.down


class Residual(LanguageModel):
    """A stack of residual layers between an embedding and a readout."""

    token: Array  # (vocab, width)
    place: Array  # (context, width)
    layers: tuple[ResidualLayer, ...]
    gain: Array  # (width,)
    readout: Array  # (width, vocab)

    def __init__(self, shape: Shape, key: Array):
        keys = jax.random.split(key, 4)
        self.token = fresh(keys[0], shape.vocab, shape.width)
        self.place = fresh(keys[1], shape.context, shape.width)
        self.layers = tuple(
            ResidualLayer(shape, layer_key) for layer_key in jax.random.split(keys[2], shape.depth)
        )
        self.gain, self.readout = jnp.ones(shape.width), fresh(keys[3], shape.width, shape.vocab)

    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        return layer_norm(self.states(tokens)[-1], self.gain) @ self.readout  # (batch, time, vocab)

    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (layer, batch, time, width)."""
        x = [embed(self.token, tokens) + self.place[: tokens.shape[1]]]  # (batch, time, width)
        for layer in self.layers:
            x.append(layer(x[-1]))
        return jnp.stack(x)  # (depth + 1, batch, time, width)

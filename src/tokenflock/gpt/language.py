"""What every rung of the ladder shares: tokens in, logits out, and the loss."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from tokenflock.gpt.fast import linear
from tokenflock.shapes import Array

INITIAL = 0.02  # standard deviation of fresh weights, as in GPT-2


class LanguageModel(eqx.Module):
    """A model of the next token: `model(tokens, key)` maps tokens (batch, time) to logits (batch,
    time, vocab).

    Without a key nothing is random, that is, there is no dropout.
    """

    @abc.abstractmethod
    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        """Logits of the token after each one."""

    @abc.abstractmethod
    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (layer, batch, time, width).

        Layer 0 is what goes into the first layer.
        """

    def loss(self, tokens: Array, targets: Array, key: Array | None = None) -> Array:
        """Mean of -log p(target) in nats."""
        return cross_entropy(self(tokens, key), targets)


def cross_entropy(logits: Array, targets: Array) -> Array:
    """Mean of logsumexp(logits) - logits[target].

    >>> import jax.numpy as jnp
    >>> round(float(cross_entropy(jnp.zeros((2, 65)), jnp.array([3, 5]))), 3)  # log 65
    4.174
    """
    # no gather
    chosen = jnp.sum(
        jnp.where(targets[..., None] == jnp.arange(logits.shape[-1]), logits, 0), axis=-1
    )
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)


def fresh(key: Array, *shape: int, scale: float = INITIAL) -> Array:
    """A new weight matrix: normal entries of a small standard deviation."""
    return scale * jax.random.normal(key, shape)


def even(key: Array, rows: int, columns: int) -> Array:
    """A new weight matrix that keeps the length of a vector: entries of variance 1/rows, for models
    without norms.
    """
    return fresh(key, rows, columns, scale=rows**-0.5)


def embed(table: Array, tokens: Array) -> Array:
    """Rows of a table, (..., width).

    Where there are few, by a product with one-hot vectors: its gradient is a product too.
    """
    if table.shape[0] <= 512:
        return linear(jax.nn.one_hot(tokens, table.shape[0], dtype=table.dtype), table)
    return table[tokens]

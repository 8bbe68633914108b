"""Rung 6, the GPT: fused heads, dropout, three kinds of position, four places for the norm, one
shared layer or many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp

from tokenflock.gpt.fast import layer_norm, linear
from tokenflock.gpt.language import LanguageModel, embed, fresh
from tokenflock.gpt.positions import rotated, sinusoidal
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array
from tokenflock.spaces.sphere import normalise

Part = Callable[[Array, Array | None], Array]  # attention or perceptron: what it reads, and a key
Step = float | Array


def dropout(x: Array, rate: float, key: Array | None) -> Array:
    """Each entry is zero with probability `rate`, the others grow to keep the mean.

    Nothing happens without a key.
    """
    if key is None or rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def spread(key: Array | None, count: int) -> list[Array | None]:
    """Keys for the parts of a layer; None for each where there is none."""
    return [None] * count if key is None else list(jax.random.split(key, count))


class FusedAttention(eqx.Module):
    """Causal attention of all heads at once: one product gives queries, keys and values.

        y_t = sum_h ( sum_{s <= t} A^h_ts v^h_s ) mix_h,
        A^h_t = softmax_s(<q^h_t, k^h_s> / sqrt(m))

    Rotary positions turn q and k by angles that grow with their place; nGPT puts them on a sphere,
    with a learned beta.
    """

    qkv: Array  # (width, 3 width)
    mix: Array  # (width, width)
    beta: Array | None  # (heads,), nGPT only
    heads: int = eqx.field(static=True)
    rotary: bool = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def __init__(self, shape: Shape, key: Array):
        key_qkv, key_mix = jax.random.split(key)
        d, small = shape.width, 0.02 / math.sqrt(2 * shape.depth)
        self.qkv, self.mix = fresh(key_qkv, d, 3 * d), fresh(key_mix, d, d, scale=small)
        self.heads, self.rotary, self.rate = shape.heads, shape.positions == "rotary", shape.dropout
        self.beta = (
            jnp.full(shape.heads, math.sqrt(d / shape.heads)) if shape.norm == "ngpt" else None
        )

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        batch, time, d = x.shape
        key_rows, key_out = spread(key, 2)
        A, v = self.matrix(x)
        y = dropout(A, self.rate, key_rows) @ v  # (batch, heads, time, m)
        y = y.swapaxes(1, 2).reshape(batch, time, d)  # heads side by side
        return dropout(linear(y, self.mix), self.rate, key_out)

    def matrix(self, x: Array) -> tuple[Array, Array]:
        """Attention matrices (batch, heads, time, time) and values (batch, heads, time, m)."""
        batch, time, d = x.shape
        m = d // self.heads
        qkv = linear(x, self.qkv).reshape(batch, time, 3, self.heads, m)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)  # (batch, heads, time, m) each
        if self.rotary:
            q, k = rotated(q), rotated(k)
        if self.beta is not None:
            q, k = normalise(q) * (self.beta * math.sqrt(m))[:, None, None], normalise(k)
        S = (q / math.sqrt(m)) @ k.swapaxes(2, 3)  # (batch, heads, time, time)
        S = jnp.where(jnp.tri(time, dtype=bool), S, -jnp.inf)  # t sees s only if s <= t
        return jax.nn.softmax(S, axis=-1), v


class Perceptron(eqx.Module):
    """y_t = gelu(x_t up) down, on every token alone."""

    up: Array  # (width, 4 width)
    down: Array  # (4 width, width)
    rate: float = eqx.field(static=True)

    def __init__(self, shape: Shape, key: Array):
        key_up, key_down = jax.random.split(key)
        d, small = shape.width, 0.02 / math.sqrt(2 * shape.depth)
        self.up, self.down, self.rate = (
            fresh(key_up, d, 4 * d),
            fresh(key_down, 4 * d, d, scale=small),
            shape.dropout,
        )

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return dropout(linear(jax.nn.gelu(linear(x, self.up)), self.down), self.rate, key)


class Move(eqx.Module):
    """How a part F moves the tokens in one step h; the normalisation schemes of
    `tokenflock.dynamics`, in training.

        pre    x <- x + h F(norm x)               tokens in R^d, their radius grows
        post   x <- norm(x + h F(x))              tokens on a sphere
        peri   x <- x + h norm(F(norm x))         in R^d, steps of one length
        ngpt   x <- n(x + h alpha n(F(x)))
        on the unit sphere, n = normalise, alpha a learned gain

    Tokens of `ngpt` have length one, so F reads sqrt(width) x. Its matrices are not normalised,
    which is where it departs from arXiv 2410.01131.
    """

    gains: Array  # (1 or 2, width): of the norm before or after, or both
    scheme: str = eqx.field(static=True)

    def __init__(self, shape: Shape):
        self.scheme = shape.norm
        first = {"ngpt": (0.2,), "peri": (1.0, 1 / math.sqrt(2 * shape.depth))}.get(
            shape.norm, (1.0,)
        )
        self.gains = jnp.outer(jnp.asarray(first), jnp.ones(shape.width))

    def __call__(self, part: Part, x: Array, h: Step, key: Array | None) -> Array:
        return self.moved(x, part(self.read(x), key), h)

    def read(self, x: Array) -> Array:
        """What the part reads."""
        if self.scheme in ("pre", "peri"):
            return layer_norm(x, self.gains[0])
        return math.sqrt(x.shape[-1]) * x if self.scheme == "ngpt" else x

    def moved(self, x: Array, y: Array, h: Step) -> Array:
        """Tokens after the part said y."""
        if self.scheme == "pre":
            return x + h * y
        if self.scheme == "post":
            return layer_norm(x + h * y, self.gains[0])
        if self.scheme == "peri":
            return x + h * layer_norm(y, self.gains[1])
        return normalise(x + h * self.gains[0] * normalise(y))


class GPTBlock(eqx.Module):
    """One layer: attention, then the perceptron, each a step of length h (Lie-Trotter splitting of
    the flow).
    """

    attention: FusedAttention
    perceptron: Perceptron
    moves: tuple[Move, Move]

    def __init__(self, shape: Shape, key: Array):
        key_attention, key_perceptron = jax.random.split(key)
        self.attention, self.perceptron = (
            FusedAttention(shape, key_attention),
            Perceptron(shape, key_perceptron),
        )
        self.moves = Move(shape), Move(shape)

    def __call__(self, x: Array, h: Step, key: Array | None = None) -> Array:
        key_attention, key_perceptron = spread(key, 2)
        x = self.moves[0](self.attention, x, h, key_attention)
        return self.moves[1](self.perceptron, x, h, key_perceptron)  # (batch, time, width)


class GPT(LanguageModel):
    """The whole model. The table of tokens also reads the logits off (weight tying).

    With `shared` there is one block, passed `depth` times: a small ALBERT with a causal mask. Such
    a model can be run with another depth and, as a flow, with another step: `model(tokens, depth=8,
    h=0.5)`.
    """

    token: Array  # (vocab, width)
    place: Array | None  # (context, width), learned positions only
    blocks: tuple[GPTBlock, ...]
    gain: Array  # (width,)
    shape: Shape = eqx.field(static=True)

    def __init__(self, shape: Shape, key: Array):
        keys = jax.random.split(key, 3)
        self.token = fresh(keys[0], shape.vocab, shape.width)
        self.place = (
            fresh(keys[1], shape.context, shape.width) if shape.positions == "learned" else None
        )
        self.blocks = tuple(
            GPTBlock(shape, key_block)
            for key_block in jax.random.split(keys[2], 1 if shape.shared else shape.depth)
        )
        self.gain, self.shape = jnp.ones(shape.width), shape

    def __call__(
        self, tokens: Array, key: Array | None = None, *, depth: int | None = None, h: float = 1.0
    ) -> Array:
        return self.read(list(self.path(tokens, key, depth, h))[-1])

    def read(self, x: Array) -> Array:
        """Logits (batch, time, vocab) of tokens (batch, time, width) after the last layer."""
        return linear(layer_norm(x, self.gain), self.token.T)

    def states(self, tokens: Array, depth: int | None = None, h: float = 1.0) -> Array:
        """The stream of tokens; of another depth or step where one layer is shared."""
        return jnp.stack(list(self.path(tokens, None, depth, h)))  # (depth + 1, batch, time, width)

    def path(self, tokens: Array, key: Array | None, depth: int | None, h: Step) -> Iterator[Array]:
        """The tokens (batch, time, width) before the first layer and after each one."""
        depth = self.shape.depth if depth is None else depth
        keys = spread(key, depth + 1)
        x = self.start(tokens, keys[0])
        yield x
        for k in range(depth):
            x = self.blocks[k % len(self.blocks)](x, h, keys[k + 1])
            yield x

    def start(self, tokens: Array, key: Array | None = None) -> Array:
        """Tokens with their places, (batch, time, width), as they go into the first layer."""
        x = embed(self.token, tokens)
        if self.place is not None:
            x = x + self.place[: tokens.shape[1]]
        elif self.shape.positions == "sinusoidal":
            # as long as fresh tokens are
            x = x + 0.02 * sinusoidal(tokens.shape[1], self.shape.width, x.dtype)
        x = dropout(x, self.shape.dropout, key)
        if self.shape.norm == "post":  # tokens start on their sphere
            return layer_norm(x, jnp.ones_like(self.gain))
        return normalise(x) if self.shape.norm == "ngpt" else x

"""The GPT in NumPy: four places for the norm, three kinds of position, one shared layer or many,
with dropout and without.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np

from tokenflock.gpt.gpt import dropout, spread


def waves(time, pairs):
    """e^{i t 10000^(-k / pairs)}, (time, pairs)."""
    return np.exp(1j * np.outer(np.arange(time), 10_000.0 ** (-np.arange(pairs) / pairs)))


def turned(x):
    """Planes (k, k + m/2) turned by the waves, as complex numbers."""
    m = x.shape[-1] // 2
    z = (x[..., :m] + 1j * x[..., m:]) * waves(x.shape[-2], m)
    return np.concatenate([z.real, z.imag], axis=-1)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def normed(x, gain):
    x = x - x.mean(axis=-1, keepdims=True)
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def dropped(x, rate, key):
    """x with the mask that this key draws."""
    return x if key is None else x * np.asarray(dropout(jnp.ones(x.shape), rate, key))


def attention(shape, part, x, key):
    """sum_h ( sum_{s <= t} A^h_ts v^h_s ) mix_h, A^h_t = softmax_s(beta <q^h_t, k^h_s>)."""
    d, heads = x.shape[2], shape.heads
    m, (of_rows, of_sum) = d // heads, spread(key, 2)
    q, k, v = (
        np.stack([x @ M[:, h * m : (h + 1) * m] for h in range(heads)], axis=1)
        for M in np.split(part.qkv, 3, axis=1)
    )
    if shape.positions == "rotary":
        q, k = turned(q), turned(k)
    scale = np.full(heads, m**-0.5)
    if shape.norm == "ngpt":
        q, k, scale = unit(q), unit(k), part.beta
    E = np.tril(np.exp(scale[:, None, None] * np.einsum("bhti,bhsi->bhts", q, k)))
    A = dropped(E / E.sum(axis=-1, keepdims=True), shape.dropout, of_rows)
    mix = part.mix.reshape(heads, m, d)
    return dropped(np.einsum("bhts,bhsi,hid->btd", A, v, mix), shape.dropout, of_sum)


def perceptron(shape, part, x, key):
    return dropped(gelu(x @ part.up) @ part.down, shape.dropout, key)


def moved(shape, gains, x, said, h):
    """One step by the table of schemes."""
    return {
        "pre": lambda: x + h * said(normed(x, gains[0])),
        "post": lambda: normed(x + h * said(x), gains[0]),
        "peri": lambda: x + h * normed(said(normed(x, gains[0])), gains[1]),
        "ngpt": lambda: unit(x + h * gains[0] * unit(said(np.sqrt(x.shape[-1]) * x))),
    }[shape.norm]()


def stream(model, ids, depth, h=1.0, key=None):
    """Tokens before the first layer and after each, and the logits."""
    shape, keys = model.shape, spread(key, depth + 1)
    x = model.token[ids]
    if shape.positions == "learned":
        x = x + model.place[: ids.shape[1]]
    if shape.positions == "sinusoidal":
        z = waves(ids.shape[1], shape.width // 2)
        x = x + 0.02 * np.concatenate([z.imag, z.real], axis=1)
    x = dropped(x, shape.dropout, keys[0])
    x = {"post": normed(x, 1.0), "ngpt": unit(x)}.get(shape.norm, x)
    states = [x]
    for layer in range(depth):
        block = model.blocks[0 if shape.shared else layer]
        one, two = spread(keys[layer + 1], 2)
        looked = partial(attention, shape, block.attention, key=one)
        x = moved(shape, block.moves[0].gains, x, looked, h)
        thought = partial(perceptron, shape, block.perceptron, key=two)
        x = moved(shape, block.moves[1].gains, x, thought, h)
        states.append(x)
    return np.stack(states), normed(x, model.gain) @ model.token.T

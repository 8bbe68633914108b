"""Layers with known matrices, what they do in plain NumPy, and a model that is made of them."""

from __future__ import annotations

import math

import numpy as np

from tokenflock.parts import LayerNorm
from tokenflock.probing import Facts, TrainedLayer, Variant
from tokenflock.probing.model import Prompt, Trace

HEADS, M, D, HIDDEN = 3, 2, 5, 7


def layer(seed=0, *, pre=False, causal=False, activation="relu", scale=0.7) -> TrainedLayer:
    """A layer of random matrices, three heads of two dimensions on tokens of five."""
    random = np.random.default_rng(seed)

    def some(*shape):
        return 0.5 * random.normal(size=shape)

    def norm():
        gain, shift = 1 + 0.3 * random.normal(size=D), 0.2 * random.normal(size=D)
        return LayerNorm(gain=gain, shift=shift, epsilon=0.01)

    arrays = {name: some(HEADS, M, D) for name in "QKV"} | {"O": some(HEADS, D, M)}
    arrays |= {name: some(HEADS, M) for name in "qkv"} | {"o": some(D)}
    arrays |= {"A": some(HIDDEN, D), "a": some(HIDDEN), "W": some(D, HIDDEN), "b": some(D)}
    return TrainedLayer(
        **arrays,
        first=norm(),
        second=norm(),
        scale=scale,
        activation=activation,
        pre=pre,
        causal=causal,
    )


def gelu(y):
    """The tanh form, as GPT-2 has it."""
    return 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


ACTIVATIONS = {
    "relu": lambda y: np.maximum(y, 0),
    "tanh": np.tanh,
    "silu": lambda y: y / (1 + np.exp(-y)),
    "gelu": lambda y: 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2))),
    "gelu_new": gelu,
    "gelu_pytorch_tanh": gelu,
    "gelu_fast": gelu,
}


def normed(norm, x):
    """gain (x - mean) / sqrt(variance + epsilon) + shift."""
    y = x - x.mean(axis=-1, keepdims=True)
    return norm.gain * y / np.sqrt((y**2).mean(axis=-1, keepdims=True) + norm.epsilon) + norm.shift


def weighted(logits, w, causal):
    """Rows w_j e^{S_ij} / sum_k w_k e^{S_ik}, over j <= i where causal, one by one."""
    out = np.zeros_like(logits)
    for i, row in enumerate(logits):
        there = [j for j in range(len(w)) if w[j] > 0 and (j <= i or not causal)]
        e = w[there] * np.exp(row[there] - row[there].max())
        out[i, there] = e / e.sum()
    return out


def attention(one, x, w):
    """The attention matrix of each head."""
    return np.stack(
        [
            weighted(one.scale * (x @ Q.T + q) @ (x @ K.T + k).T, w, one.causal)
            for Q, q, K, k in zip(one.Q, one.q, one.K, one.k)
        ]
    )


def attended(one, x, w):
    """sum_h O_h sum_j A^h_ij (V_h x_j + v_h) + o."""
    rows = zip(one.O, attention(one, x, w), one.V, one.v)
    return sum(A @ (x @ V.T + v) @ O.T for O, A, V, v in rows) + one.o


def fed(one, x):
    """W sigma(A x + a) + b."""
    return ACTIVATIONS[one.activation](x @ one.A.T + one.a) @ one.W.T + one.b


def between(one, x, w):
    """The tokens after attention."""
    if one.pre:
        return x + attended(one, normed(one.first, x), w)
    return normed(one.first, x + attended(one, x, w))


def after(one, x, w):
    """The tokens after the layer."""
    y = between(one, x, w)
    if one.pre:
        return y + fed(one, normed(one.second, y))
    return normed(one.second, y + fed(one, y))


def tokens(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D))


class Made:
    """A model of such layers: letters are tokens, of which `a` is the first, number 0."""

    def __init__(self, layers, depth=None, dtype="float64", variant=Variant()):
        depth = len(layers) if depth is None else depth
        facts = ("made", None, "made", D, HEADS, depth, depth, 9, dtype)
        self.layers, self.facts = layers, Facts(*facts, variant=variant)

    def digest(self):
        return "0" * 64

    def encode(self, text, length):
        ids = np.array([ord(letter) - ord("a") for letter in text.text[:length]])
        return Prompt(text.text, ids, ids == 25, tuple(text.text[:length]))

    def record(self, prompts, size, recording):
        depth = self.facts.depth
        x = np.zeros((len(prompts), depth + 1, size, D))
        for p, prompt in enumerate(prompts):
            n = len(prompt)
            x[p, 0, :n] = 2 * tokens(26, seed=1)[prompt.ids] + np.sin(np.arange(n))[:, None]
            for k in range(depth):
                one = self.layers[k % len(self.layers)]
                x[p, k + 1, :n] = after(one, x[p, k, :n], np.full(n, 1 / n))
        return Trace(x[:, list(recording.places(depth))])

    def blocks(self):
        return self.layers

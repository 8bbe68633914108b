"""Every rung below the GPT is its formula, written out by loops."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tokenflock.gpt import Shape
from tokenflock.gpt.ladder import build
from tokenflock.gpt.settings import RUNGS
from tokenflock.precision import precision

SMALL = {"vocab": 7, "context": 6, "width": 8, "heads": 2, "depth": 2}
TOKENS = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 3, 5]])


def attention(x, head):
    """Z_t^{-1} sum_{s <= t} e^{<Q x_t, K x_s> / sqrt(m)} V x_s of one text."""
    q, k, v = x @ head.Q, x @ head.K, x @ head.V
    rows = []
    for t in range(len(x)):
        e = [np.exp(q[t] @ k[s] / np.sqrt(len(q[t]))) for s in range(t + 1)]
        rows.append(sum(a * v[s] for s, a in enumerate(e)) / sum(e))
    return np.array(rows)


def mixed(x, part):
    return np.concatenate([attention(x, head) for head in part.heads], axis=1) @ part.mix


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def normed(x, gain):
    x = x - x.mean(axis=1, keepdims=True)
    return gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)


def residual(x, model):
    for layer in model.layers:
        y = normed(x, layer.gains[0])
        x = x + mixed(y, layer)
        x = x + gelu(normed(x, layer.gains[1]) @ layer.up) @ layer.down
    return normed(x, model.gain)


SAYS = {
    "head": lambda x, model: attention(x, model.head),
    "multi-head": mixed,
    "feed-forward": lambda x, model: gelu(mixed(x, model) @ model.up) @ model.down,
    "residual": residual,
}


@pytest.mark.parametrize("rung", RUNGS[:-1])
def test_a_rung_is_its_formula(rung):
    with precision("float32"):
        model = build(Shape(**SMALL, rung=rung), jax.random.key(1))
        model = jax.tree.map(lambda leaf: leaf * (15 if 0 < leaf.std() < 0.1 else 1), model)
        logits = np.asarray(model(TOKENS))
        model = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), model)
    for text, found in zip(TOKENS, logits, strict=True):
        if rung == "bigram":
            expected = model.table[text]
        else:
            x = model.token[text] + model.place[: len(text)]
            expected = SAYS[rung](x, model) @ model.readout
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())

"""Every rung below the GPT is its formula, written out by loops."""

from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

from tests.gpt.formula import gelu, normed
from tests.gpt.made import SMALL, TOKENS, made
from tokenflock.gpt import Shape
from tokenflock.gpt.settings import RUNGS

pytestmark = pytest.mark.usefixtures("double", "quick_compilation")


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
    model = made(Shape(**SMALL, rung=rung))
    logits = eqx.filter_jit(lambda ids: model(ids))(TOKENS)
    for text, found in zip(TOKENS, logits, strict=True):
        if rung == "bigram":
            expected = model.table[text]
        else:
            x = model.token[text] + model.place[: len(text)]
            expected = SAYS[rung](x, model) @ model.readout
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)

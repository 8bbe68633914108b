"""A layer of a real model is its `Block`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.probing import conftest
from tests.probing.conftest import CONFIGS, SMALL, ids, small, transformers
from tokenflock import recipe
from tokenflock.dynamics import Block
from tokenflock.errors import UserError
from tokenflock.gpt.gpt import GPT
from tokenflock.gpt.settings import Shape
from tokenflock.parts import WindowMask
from tokenflock.precision import precision
from tokenflock.probing import Facts, probe
from tokenflock.probing.own_gpt import OwnGPT
from tokenflock.solvers import EulerMaruyama, Layer

MADE = ("albert", "bert", "roberta", "distilbert", "gpt2", "llama", "gemma")


def stepped(block, x):
    """The tokens after one layer."""
    with precision("float64"):
        w = jnp.full(len(x), 1 / len(x))
        step = Layer(h=1.0).step(block, 0.0, jnp.asarray(x, float), w, jax.random.key(0))
        return np.asarray(step)


BESIDE = {  # of the family of Llama: a sliding window, and biases of queries, keys and values
    "mistral": ("MistralConfig", SMALL | {"num_key_value_heads": 1, "sliding_window": 3}),
    "qwen2": ("Qwen2Config", SMALL | {"num_key_value_heads": 1}),
}


@pytest.mark.parametrize("kind", [*MADE, *BESIDE])
def test_a_random_models_layer_is_its_block(kind, monkeypatch):
    monkeypatch.setattr(conftest, "CONFIGS", CONFIGS | BESIDE)
    model = small(kind)
    x = probe(model, ids(7)).x[0].values
    for layer in (0, 1):
        block = Block.from_model(model, layer)
        error = np.abs(stepped(block, x[layer]) - x[layer + 1]).max()
        assert error < 1e-5 * np.abs(x[layer + 1]).max(), layer
        assert np.abs(x[layer + 1] - x[layer]).max() > 0.1  # the layer does something


def test_the_block_of_a_model_is_data():
    block = Block.from_model(small("llama"), 1)
    again = recipe.rebuild(recipe.describe(block))
    x = np.random.default_rng(0).normal(size=(5, 16))
    assert np.array_equal(stepped(again, x), stepped(block, x))


def test_a_pre_norm_model_flows_and_a_post_norm_model_does_not():
    start = np.random.default_rng(0).normal(size=(4, 16))
    flowing = flock.simulate(Block.from_model(small("gpt2")), start, t=0.5, frames=3)
    assert np.isfinite(flowing.x).all() and float(abs(flowing.x[-1] - flowing.x[0]).max()) > 1e-3
    bert = Block.from_model(small("bert"))
    for solver in (None, EulerMaruyama(h=0.1)):
        with pytest.raises(UserError, match="is no flow: its gains act at h = 0 too"):
            flock.simulate(bert, start, t=0.5, frames=3, solver=solver)
    layers = flock.simulate(bert, start, t=3, frames=4, solver=Layer(h=1.0))
    assert np.isfinite(layers.x).all()


@pytest.mark.parametrize(("kind", "words"), [("gpt_neox", "not known"), ("gemma2", "not known")])
def test_what_is_no_block_is_refused(kind, words):
    with pytest.raises(UserError, match=words):
        Block.from_model(small(kind))
    assert kind in CONFIGS


def test_a_window_of_a_model_is_a_mask():
    config, options = BESIDE["mistral"]
    model = transformers.AutoModel.from_config(getattr(transformers, config)(**options))
    assert Block.from_model(model).mask == WindowMask(width=3)
    qwen3 = transformers.AutoModel.from_config(
        transformers.Qwen3Config(**SMALL, num_key_value_heads=1, head_dim=8)
    )
    with pytest.raises(UserError, match="norms its queries"):
        Block.from_model(qwen3)


def test_layers_are_counted_from_zero():
    with pytest.raises(UserError, match="layer must be from 0 to 2, got 3"):
        Block.from_model(small("gpt2"), 3)


def own(norm, positions):
    """A fresh model of ours, its matrices large enough that its layers do something."""
    shape = Shape(vocab=9, context=8, width=8, heads=2, depth=2, norm=norm, positions=positions)
    network = GPT(shape, jax.random.key(0))
    network = jax.tree.map(
        lambda a: a + 0.3 * jnp.cos(jnp.arange(a.size)).reshape(a.shape), network
    )
    facts = Facts("ours", None, "gpt", 8, 2, 2, 2, 8, "float32")
    return OwnGPT(network, None, facts)


@pytest.mark.parametrize(
    ("norm", "positions"),
    [
        ("pre", "rotary"),
        ("post", "learned"),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in (
                ("pre", "learned"),
                ("post", "rotary"),
                ("peri", "learned"),
                ("peri", "rotary"),
            )
        ),
    ],
)
def test_a_layer_of_our_own_model_is_its_block(norm, positions):
    model = own(norm, positions)
    x = np.asarray(model.network.states(jnp.arange(6)[None])[:, 0], float)
    for layer in (0, 1):
        again = stepped(Block.from_model(model, layer), x[layer])
        assert np.abs(again - x[layer + 1]).max() < 1e-5 * np.abs(x[layer + 1]).max()
        assert np.abs(x[layer + 1] - x[layer]).max() > 0.1


def test_our_ngpt_is_no_block():
    with pytest.raises(UserError, match="norms queries and keys"):
        Block.from_model(own("ngpt", "rotary"))

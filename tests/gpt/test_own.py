"""A model of our own behind `Model`: its tokens, its matrices and its laws, number by number."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import tokenflock as flock
from tests.probing import made
from tokenflock import gpt
from tokenflock.dynamics import Block
from tokenflock.errors import UserError
from tokenflock.gpt.checkpoint import Checkpoint, Config, save
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.text import Characters
from tokenflock.parts import NoPositions, Peri, Post, Pre, Rotary
from tokenflock.probing import Facts, Recording, Text, Variant, own_gpt
from tokenflock.probing.own_gpt import OwnGPT
from tokenflock.shapes import Array

PROMPTS = ["abcabca", "cab"]


SHAPE = {"vocab": 3, "context": 9, "width": 8, "heads": 2, "depth": 2}


def of_shape(**changes):
    """A model of ours that was never written, its numbers large enough to do something."""
    shape = gpt.Shape(**SHAPE | changes)
    skeleton = eqx.filter_eval_shape(build, shape, jax.random.key(0))
    leaves, tree = jax.tree.flatten(skeleton)
    numbers = [0.7 * np.cos(1.7 * np.arange(leaf.size) + k) for k, leaf in enumerate(leaves)]
    arrays = [
        jnp.asarray(some.reshape(leaf.shape), jnp.float32) for some, leaf in zip(numbers, leaves)
    ]
    facts = Facts("ours", None, "gpt", 8, 2, shape.layers, shape.layers, 9, "float32")
    config = Config(shape, gpt.Schedule(steps=1, batch=1), Characters("abc"), "")
    return OwnGPT(jax.tree.unflatten(tree, arrays), config, facts)


@pytest.fixture(scope="module")
def model():
    return of_shape()


@pytest.fixture(scope="module")
def probed(model):
    record = Recording(attention=True, sublayers=True, entropy=True)
    return flock.probe(model, PROMPTS, record=record)


def test_attention_sublayers_and_layers_are_those_of_the_matrices(model, probed):
    """In plain NumPy, from the matrices that the model tells."""
    layers = model.blocks()
    for p, word in enumerate(PROMPTS):
        n = len(word)
        w, x = np.full(n, 1 / n), probed["x"].values[p, :, :n].astype(float)
        here = probed.isel(prompt=p, token=slice(0, n), other=slice(0, n))
        for k, one in enumerate(layers):
            A = made.attention(one, made.normed(one.first, x[k]), w)
            np.testing.assert_allclose(here["attention"][k + 1], A, atol=1e-4)
            entropy = -np.where(A > 0, A * np.log(np.where(A > 0, A, 1)), 0).sum(-1)
            np.testing.assert_allclose(here["attention_entropy"][k + 1], entropy, atol=1e-3)
            between = made.between(one, x[k], w)
            np.testing.assert_allclose(here["x_attention"][k + 1], between, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(x[k + 1], made.after(one, x[k], w), rtol=1e-3, atol=1e-3)
    assert np.abs(np.diff(probed["x"].values[0], axis=0)).max(axis=(1, 2)).min() > 0.1


def test_what_is_not_there_is_nothing(probed):
    gone, first = probed.isel(prompt=1, token=slice(3, None)), probed.isel(layer=0)
    assert not gone["attention"][1:].any() and not gone["x_attention"][1:].any()
    assert not probed["attention"][1, 1:, :, :, 3:].any()
    assert np.isnan(gone["attention_entropy"]).all() and (gone["id"] == -1).all()
    for name in ("attention", "attention_entropy"):
        assert np.isnan(first[name]).all() and probed[name].dtype == np.float32
    assert np.isnan(first["x_attention"][0]).all()


@pytest.mark.parametrize("name", ["attention", "entropy", "sublayers"])
def test_each_is_kept_alone_and_at_the_layers_that_are_asked_for(model, probed, name):
    found = flock.probe(model, PROMPTS, record=Recording(**{name: True}, layers=[0, 2]))
    kept = {"attention": "attention", "entropy": "attention_entropy", "sublayers": "x_attention"}
    assert set(found.data_vars) == {"x", "w", "id", "special", kept[name]}
    there = probed.sel(layer=[0, 2])
    np.testing.assert_array_equal(found[kept[name]], there[kept[name]])
    np.testing.assert_array_equal(found["x"], there["x"])


def test_a_model_of_ours_runs_in_the_numbers_that_are_asked_for(model, probed):
    double = replace(model, facts=replace(model.facts, dtype="float64"))
    found = flock.probe(double, PROMPTS)
    assert found["x"].dtype == np.float64 and probed["x"].dtype == np.float32
    np.testing.assert_allclose(found["x"], probed["x"], rtol=1e-3, atol=1e-4)
    assert 0 < np.abs(found["x"] - probed["x"]).max() < 1e-3


def test_the_digest_is_that_of_the_weights_by_name(model, tmp_path):
    save(tmp_path, Checkpoint(model.config, model.network, 0))
    total = hashlib.sha256()
    for name, tensor in sorted(load_file(tmp_path / "model.safetensors").items()):
        assert name.startswith("model.")
        total.update(name.encode() + tensor.tobytes())
    assert model.digest() == total.hexdigest()


def test_texts_are_letters_and_ready_ids_are_taken(model):
    told = model.encode(Text("cabba"), 4)
    assert told.ids.tolist() == [2, 0, 1, 1] and told.words == ("c", "a", "b", "b")
    assert told.special.tolist() == [False] * 4 and told.text == "cabba"
    assert model.encode(Text("x", (2, 0)), 4).ids.tolist() == [2, 0]


def given(monkeypatch, variant=Variant(), **changes):
    """A model of this shape as it is loaded; its weights are a word."""
    config = Config(
        gpt.Shape(**SHAPE | changes), gpt.Schedule(steps=1, batch=1), Characters("abc"), ""
    )
    monkeypatch.setattr(own_gpt, "load_checkpoint", lambda _: Checkpoint(config, "trained", 0))
    monkeypatch.setattr(own_gpt, "fresh", lambda shape, seed: f"fresh {shape.width} {seed}")
    return own_gpt.load("somewhere/little", variant)


def test_the_facts_of_a_model_of_ours(monkeypatch):
    model = given(monkeypatch)
    assert model.network == "trained"
    variant = Variant()
    assert model.facts == Facts(
        "little", "somewhere/little", "tokenflock-gpt", 8, 2, 2, 2, 9, "float32", "", variant
    )
    variant = Variant(untrained=True, seed=4, dtype="float64", heads=2, depth=2)
    model = given(monkeypatch, variant)
    assert model.network == "fresh 8 4" and model.facts.name == "little (untrained, seed 4)"
    assert model.facts.dtype == "float64" and model.facts.variant == variant


def test_only_shared_layers_of_ours_run_deeper(monkeypatch):
    for depth in (0, 1, 5):
        facts = given(monkeypatch, Variant(depth=depth), shared=True).facts
        assert (facts.depth, facts.own_depth) == (depth, 2)
    with pytest.raises(UserError, match="depth must be 0 or more, got -1"):
        given(monkeypatch, Variant(depth=-1), shared=True)
    for changes in ({}, {"rung": "residual", "shared": True}):
        with pytest.raises(UserError, match="depth = 5: the 2 layers of somewhere/little have"):
            given(monkeypatch, Variant(depth=5), **changes)
    with pytest.raises(UserError, match="heads must be left out"):
        given(monkeypatch, Variant(heads=1))
    with pytest.raises(UserError, match="dtype must be float32 or float64"):
        given(monkeypatch, Variant(dtype="bfloat16"))


class Rows(LanguageModel):
    """A rung without attention: one layer that doubles what a table says."""

    table: Array

    def __call__(self, tokens, key=None):
        return self.states(tokens)[-1]

    def states(self, tokens):
        return jnp.stack([self.table[tokens], 2 * self.table[tokens]])


def test_a_lower_rung_tells_its_tokens_and_no_more(model):
    table = np.cos(np.arange(24.0)).reshape(3, 8)
    config = replace(model.config, shape=gpt.Shape(**SHAPE, rung="residual"))
    lower = OwnGPT(Rows(table), config, replace(model.facts, depth=1, dtype="float64"))
    found = flock.probe(lower, PROMPTS)
    for p, row in enumerate(([0, 1, 2, 0, 1, 2, 0], [2, 0, 1])):
        np.testing.assert_array_equal(found["x"][p, 0, : len(row)], table[row])
        np.testing.assert_array_equal(found["x"][p, 1, : len(row)], 2 * table[row])
        assert not found["x"][p, :, len(row) :].any()
    for name in ("attention", "entropy", "sublayers"):
        with pytest.raises(UserError, match="told by the rung gpt, not by residual"):
            flock.probe(lower, PROMPTS, record=Recording(**{name: True}))
    with pytest.raises(UserError, match="do not tell its layers"):
        lower.blocks()
    with pytest.raises(UserError, match="is no Block"):
        lower.laws()


@pytest.mark.parametrize(
    ("norm", "positions"),
    [("pre", "learned"), ("post", "sinusoidal"), ("post", "rotary"), ("peri", "rotary")],
)
def test_the_matrices_of_a_layer_of_ours(norm, positions):
    """Queries, keys and values side by side, head by head; each matrix acts from the left."""
    model = of_shape(norm=norm, positions=positions)
    law, layer = Block.from_model(model, 1), model.network.blocks[1]
    qkv, mix = np.asarray(layer.attention.qkv, float), np.asarray(layer.attention.mix, float)
    for h in range(2):
        for k, letter in enumerate("QKV"):
            columns = slice(8 * k + 4 * h, 8 * k + 4 * h + 4)
            np.testing.assert_array_equal(getattr(law.heads, letter)[h], qkv[:, columns].T)
            assert not getattr(law.heads, letter.lower()).any()
        np.testing.assert_array_equal(law.heads.O[h], mix[4 * h : 4 * h + 4].T)
    feed = law.feed_forward
    np.testing.assert_array_equal(feed.A, np.asarray(layer.perceptron.up, float).T)
    np.testing.assert_array_equal(feed.W, np.asarray(layer.perceptron.down, float).T)
    assert law.beta == 0.5 and not feed.a.any() and not feed.b.any() and not law.heads.o.any()
    assert law.positions == (Rotary() if positions == "rotary" else NoPositions())
    assert isinstance(law.norm, {"pre": Pre, "post": Post, "peri": Peri}[norm])
    first, second = (np.asarray(move.gains, float) for move in layer.moves)
    np.testing.assert_array_equal(law.norm.first.gain, first[0])
    np.testing.assert_array_equal(law.norm.second.gain, second[0])
    if norm == "peri":
        np.testing.assert_array_equal(law.norm.first_out.gain, first[1])
        np.testing.assert_array_equal(law.norm.second_out.gain, second[1])
    assert law.norm.first.epsilon == 1e-5 and not law.norm.first.shift.any()
    if norm == "peri" or positions == "rotary":
        with pytest.raises(UserError, match="do not tell its layers"):
            model.blocks()
    else:
        told = model.blocks()[1]
        assert told.pre == (norm == "pre") and told.causal and told.activation == "gelu_new"


def test_a_shared_layer_of_ours_is_passed_again():
    model = of_shape(shared=True)
    deep = replace(model, facts=replace(model.facts, depth=3))
    for record in (Recording(), Recording(sublayers=True)):
        x = flock.probe(deep, ["abcab"], record=record)["x"].values[0].astype(float)
        assert x.shape == (4, 5, 8)
        (one,) = deep.blocks()
        for k in range(3):
            again = made.after(one, x[k], np.full(5, 0.2))
            np.testing.assert_allclose(x[k + 1], again, rtol=1e-3, atol=1e-3)


def test_a_token_of_length_zero_stays_zero():
    x = np.zeros((2, 1, 2, 3), np.float32)  # (layer, prompt, token, coord)
    x[1, 0, 0] = (0, 3, 4)
    found = own_gpt._streams(x, np.ones((1, 2), bool), Recording(normalise=True))
    np.testing.assert_allclose(found[0, 1], [[0, 0.6, 0.8], [0, 0, 0]])
    assert not found[0, 0].any()

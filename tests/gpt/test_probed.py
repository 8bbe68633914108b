"""A model of our own, never trained, probed like any other: quick, and number by number."""

from __future__ import annotations

import shutil

import jax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import gpt
from tokenflock.errors import UserError
from tokenflock.gpt.checkpoint import Checkpoint, Config, fresh, load, save
from tokenflock.gpt.text import Characters, save_passages
from tokenflock.probing import Recording

pytestmark = pytest.mark.usefixtures("quick_compilation")

PROMPTS = ["abcabca", "cab"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint of fresh weights, somewhat larger than usual."""
    place, alphabet = tmp_path_factory.mktemp("own"), Characters.of("abc")
    shape = gpt.Shape(vocab=alphabet.size, context=8, width=8, heads=2, depth=2)
    config = Config(shape, gpt.Schedule(steps=1, batch=1), alphabet, "")
    model = jax.tree.map(lambda leaf: 4 * leaf if leaf.ndim == 2 else leaf, fresh(shape))
    save(place, Checkpoint(config, model, 0))
    return place


@pytest.fixture(scope="module")
def probed(folder):
    record = Recording(attention=True, sublayers=True, entropy=True)
    return flock.probe(str(folder), PROMPTS, record=record)


def test_probed_tokens_are_those_of_the_model(folder, probed):
    states = np.asarray(load(folder).model.states(probed["id"].values)).transpose(1, 0, 2, 3)
    there = probed["w"].values > 0
    assert there.sum(1).tolist() == [7, 3] and probed["x"].shape == states.shape
    np.testing.assert_allclose(
        probed["x"].values.transpose(0, 2, 1, 3)[there],
        states.transpose(0, 2, 1, 3)[there],
        rtol=1e-4,
        atol=1e-5,
    )
    assert (probed["x"].values.transpose(0, 2, 1, 3)[~there] == 0).all()


def test_attention_looks_back_and_is_a_mean(probed):
    rows = probed["attention"].isel(prompt=0, layer=1).values
    np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-5)
    assert np.triu(rows[0], 1).max() == 0
    assert (probed["attention_entropy"].isel(layer=1, prompt=0) >= -1e-6).all()


def test_tokens_without_their_radius_are_unit_vectors(folder, probed):
    unit = flock.probe(str(folder), PROMPTS, record=Recording(normalise=True))["x"].values[0]
    x = probed["x"].values[0]
    np.testing.assert_allclose(unit, x / np.linalg.norm(x, axis=-1, keepdims=True), atol=1e-5)


def test_the_last_norm_is_refused_only_where_it_would_be_read(folder, probed):
    early = Recording(final_norm=True, layers=[1])
    x = flock.probe(str(folder), PROMPTS, record=early)["x"].values[:, 0]
    np.testing.assert_allclose(x, probed["x"].values[:, 1], atol=1e-5)
    with pytest.raises(UserError, match="final_norm"):
        flock.probe(str(folder), PROMPTS, record=Recording(final_norm=True))


def test_a_checkpoint_is_probed_on_the_passages_beside_it_unless_others_are_given(
    folder, probed, tmp_path
):
    again = gpt.probe(folder, PROMPTS)
    np.testing.assert_allclose(again["x"], probed["x"], atol=1e-5)
    with pytest.raises(UserError, match=r"texts must be given, since .* has no prompts\.json"):
        gpt.probe(folder)
    shutil.copytree(folder, tmp_path / "run")
    ids = np.array([[0, 1, 2, 0, 1, 2, 0], [2, 1, 0, 0, 0, 1, 1]])
    save_passages(tmp_path / "run", Characters.of("abc"), ids)
    beside = gpt.probe(tmp_path / "run")
    assert beside["id"].values.tolist() == ids.tolist()
    np.testing.assert_allclose(beside["x"][0], probed["x"][0], atol=1e-5)

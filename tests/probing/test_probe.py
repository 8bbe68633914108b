"""What `probe` makes of a model's answers: weights, ids, batches, files, and what memory they need.

The model is one of known matrices, so that every number can be told.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tests.probing.made import D, Made, layer
from tokenflock.errors import UserError
from tokenflock.observables import MeanCosine
from tokenflock.probing import (
    Energies,
    Facts,
    Recording,
    Selection,
    Variant,
    half_layers,
    probe,
    survey,
)
from tokenflock.probing import layers as home
from tokenflock.probing.model import Prompt, Trace

WORDS = ["abcd", "zab", "bcdea", "ca", "dd"]


@pytest.fixture(scope="module")
def model():
    return Made([layer(1, pre=True)], depth=2)


def test_batches_in_memory_and_in_a_file_hold_the_same(model, tmp_path):
    shares = []
    whole = probe(model, WORDS, batch=9)
    parts = probe(model, WORDS, batch=2, progress=shares.append)
    filed = probe(model, WORDS, batch=2, out=tmp_path / "probe.nc", progress=shares.append)
    assert shares == [0.4, 0.8, 1.0] * 2
    for other in (parts, filed, flock.load(tmp_path / "probe.nc")):
        assert set(other.variables) == set(whole.variables)
        assert set(other.coords) == set(whole.coords) and other.sizes == whole.sizes
        for name in whole.variables:
            np.testing.assert_array_equal(other[name], whole[name])
        assert other.attrs["recipe"] == whole.attrs["recipe"]
        assert other.x.attrs["long_name"] == "tokens"
    assert [path.name for path in tmp_path.iterdir()] == ["probe.nc"]


def test_prompts_keep_their_numbers_words_ids_and_weights(model):
    found = probe(model, WORDS, batch=2, tokens=Selection(special=False))
    assert found.prompt.values.tolist() == [0, 1, 2, 3, 4] and found.layer.values.tolist() == [
        0,
        1,
        2,
    ]
    assert found.text.values.tolist() == WORDS
    assert ["".join(row) for row in found.word.values] == WORDS
    assert found.id.values[1].tolist() == [25, 0, 1, -1, -1]
    assert found.special.values[1].tolist() == [1, 0, 0, 0, 0]  # z
    np.testing.assert_allclose(found.w.values[0], [0.25, 0.25, 0.25, 0.25, 0])
    np.testing.assert_allclose(found.w.values[1], [0, 0.5, 0.5, 0, 0])
    assert found.x.dims == ("prompt", "layer", "token", "coord") and not found.x[3, :, 2:].any()
    np.testing.assert_array_equal(
        found.x[2],
        model.record([model.encode(flock.probing.Text(WORDS[2]), 9)], 5, Recording()).x[0],
    )


def test_the_recipe_tells_everything(model):
    record = Recording(layers=[-1, 0], normalise=True, final_norm=True)
    found = probe(model, WORDS[:3], record=record, tokens=Selection(first=False, length=4))
    recipe = json.loads(found.attrs["recipe"])
    told = {
        "verb": "probe",
        "model": "made",
        "source": None,
        "sha256": "0" * 64,
        "architecture": "made",
        "d": D,
        "depth": 2,
        "own_depth": 2,
        "heads": 3,
        "untrained": False,
        "seed": 0,
        "layers": [0, 2],
        "normalise": True,
        "special": True,
        "first": False,
        "length": 4,
        "final_norm": True,
        "dtype": "float64",
        "observe": [],
    }
    assert {key: recipe[key] for key in told} == told
    assert {"torch", "transformers"} <= set(recipe["versions"])
    assert found.attrs["title"] == "made, 2 layers" and found.attrs["model"] == "made"


def test_without_states_only_what_is_observed_is_kept(model):
    plain = probe(model, WORDS[:2], observe=[MeanCosine()], batch=1)
    found = probe(model, WORDS[:2], record=Recording(states=False), observe=[MeanCosine()], batch=1)
    assert "x" not in found and "w" in found
    np.testing.assert_array_equal(found.mean_cosine, plain.mean_cosine)
    u = plain.x[0, :, :4].values
    u = u / np.linalg.norm(u, axis=-1, keepdims=True)
    pairs = [(one @ one.T)[~np.eye(4, dtype=bool)].mean() for one in u]
    np.testing.assert_allclose(plain.mean_cosine[0], pairs, atol=1e-12)


def test_what_is_asked_for_can_be_had(model):
    for record, observe, batch in (
        (Recording(), [], 1),
        (Recording(states=False), [MeanCosine()], 1),
        (Recording(states=False, entropy=True), [], 1),
    ):
        home._check_asked(record, observe, batch)
    with pytest.raises(UserError, match="states must be True where nothing else is kept"):
        probe(model, WORDS, record=Recording(states=False))
    with pytest.raises(UserError, match="batch must be 1 or more, got 0"):
        probe(model, WORDS, batch=0)
    with pytest.raises(UserError, match=r"text 1 \('d'\) has too few tokens: 1 that count"):
        probe(model, ["dd", "d"])
    with pytest.raises(UserError, match="too few tokens: 1 that count"):
        probe(model, ["zd"], tokens=Selection(special=False))


def test_a_variant_is_that_of_the_model_or_left_out():
    deep = Made([layer()], variant=Variant(depth=1))
    assert probe(deep, ["ab"], 1).sizes["layer"] == 2 == probe(deep, ["ab"]).sizes["layer"]
    with pytest.raises(UserError, match="left out for a model that is loaded already"):
        probe(deep, ["ab"], 2)


def test_texts_are_cut_to_512_tokens_or_what_the_model_takes():
    def facts(room):
        return Facts("x", None, "x", 4, 1, 1, 1, room, "float32")

    assert home._length(facts(9), None) == 9 and home._length(facts(10**6), None) == 512
    for length in (2, 5, 9):
        assert home._length(facts(9), length) == length
    for length in (1, 10):
        with pytest.raises(UserError, match="length must be from 2 to the 9 tokens that x takes"):
            home._length(facts(9), length)


MEMORY = [  # bytes for a batch, and for all that is kept
    (Recording(), "float32", 2 * 1980, 7 * 1980),
    (Recording(), "float64", 4 * 1980, 14 * 1980),
    (Recording(sublayers=True), "bfloat16", 4 * 1980, 14 * 1980),
    (Recording(entropy=True), "float32", 2 * (1980 + 4 * 1452), 7 * 1980),
    (Recording(attention=True), "float32", 2 * (1980 + 7 * 1452), 7 * (1980 + 3 * 1452)),
    (Recording(attention=True, states=False), "float32", 2 * (1980 + 7 * 1452), 7 * 3 * 1452),
]


@pytest.mark.parametrize(("record", "dtype", "batch", "kept"), MEMORY)
def test_memory_is_that_of_states_and_matrices(monkeypatch, record, dtype, batch, kept):
    """7 prompts of 11 tokens in 3 layers of width 15, two at once: states of 3 11 15 numbers, 1,980
    bytes, and 3 heads of 11^2 numbers, 1,452 bytes, in each of the 4 layers that run and, where
    they are kept, of the 3 that are recorded.
    """
    asked = []
    monkeypatch.setattr(
        home, "require_memory", lambda needed, what, instead: asked.append((needed, what, instead))
    )
    facts = Facts("x", None, "x", 15, 3, 4, 4, 20, dtype)
    home._check_memory(facts, record, (7, 3, 11), 2, kept=True)
    home._check_memory(facts, record, (7, 3, 11), 2, kept=False)
    assert [needed for needed, *_ in asked] == [batch, kept, batch]
    assert "7 prompts of 11 tokens in 3 layers" in asked[1][1]
    assert "batch=1" in asked[0][2] and "out='probe.nc'" in asked[1][2]


def test_a_batch_is_no_larger_than_the_prompts(monkeypatch):
    asked = []
    monkeypatch.setattr(home, "require_memory", lambda needed, *_: asked.append(needed))
    facts = Facts("x", None, "x", 15, 3, 4, 4, 20, "float32")
    home._check_memory(facts, Recording(), (2, 3, 11), 8, kept=True)
    assert asked == [2 * 1980, 2 * 1980]


def traced(**more):
    """Two prompts of two tokens on a line, three layers."""
    x = np.arange(12.0).reshape(2, 3, 2, 1)
    prompts = [
        Prompt(text, np.array([1, 2]), np.zeros(2, bool), ("u", "v")) for text in ("one", "two")
    ]
    return home._dataset(prompts, Trace(x, **more), (0, 1, 2), Selection(), 4), x


def test_what_a_model_tells_is_kept_and_nothing_else():
    plain, x = traced()
    assert set(plain.data_vars) == {"x", "w", "id", "special"}
    assert plain.prompt.values.tolist() == [4, 5]
    A = np.random.default_rng(0).random((2, 3, 1, 2, 2))
    full, _ = traced(attention=A, entropy=A[..., 0], x_attention=x + 0.5)
    assert full.attention.dims == ("prompt", "layer", "head", "token", "other")
    assert full.attention_entropy.dims == ("prompt", "layer", "head", "token")
    np.testing.assert_array_equal(full.attention, A)
    np.testing.assert_array_equal(full.attention_entropy, A[..., 0])
    np.testing.assert_array_equal(full.x_attention, x + 0.5)


def test_half_layers_stand_between_the_layers():
    full, x = traced(x_attention=np.arange(12.0).reshape(2, 3, 2, 1) - 0.25)
    both = half_layers(full.assign_attrs(title="both"))
    assert both.layer.values.tolist() == [0, 0.5, 1, 1.5, 2] and both.attrs["title"] == "both"
    order = [x[:, 0], x[:, 1] - 0.25, x[:, 1], x[:, 2] - 0.25, x[:, 2]]
    np.testing.assert_array_equal(both.x.transpose("layer", ...), order)
    assert set(both.data_vars) == {"x", "w", "id", "special"}
    with pytest.raises(UserError, match="a probe with record=Recording"):
        half_layers(traced()[0])


def test_former_names_warn_where_they_are_used():
    from tokenflock import probing
    from tokenflock.probing import TrainedLayer, _former

    with pytest.warns(DeprecationWarning, match="TrainedLayer") as told:
        assert probing.Block is TrainedLayer
    full, x = traced(x_attention=np.zeros((2, 3, 2, 1)))
    with pytest.warns(DeprecationWarning, match="half_layers") as again:
        assert probing.halves(full).sizes["layer"] == 5 and x.shape[1] == 3
    assert told[0].filename == again[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _former.Nothing  # noqa: B018


def test_the_survey_measures_near_pairs_and_energies():
    """Three tokens, two of them near: cosine 0.9 is near, 0.89 is not."""
    angles = np.array([0.0, np.arccos(0.9) - 1e-6, np.arccos(0.9) + np.arccos(0.89)])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    w = np.array([0.5, 0.3, 0.2])
    block = xr.Dataset({"x": (("token", "coord"), 3 * x), "w": ("token", w)})
    found = flock.measure(block, [Energies(), *survey()[1:3]])
    assert found.beta.values.tolist() == [1, 4, 16]
    expected = [w @ np.exp(beta * (x @ x.T - 1)) @ w for beta in (1, 4, 16)]
    np.testing.assert_allclose(found.energies, expected, rtol=1e-5)
    near = 2 * w[0] * w[1] / (1 - (w**2).sum())
    np.testing.assert_allclose(found.pair_density, near, rtol=1e-5)
    assert float(found.cluster_count) == 2
    kinds = [type(one).__name__ for one in survey(7)]
    wanted = "MeanCosine PairDensity ClusterCount EffectiveRank Energies Histogram"
    assert kinds == wanted.split() and survey(7)[-1].bins == 7

"""A layer of known matrices does what its formula says, in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.probing import made
from tests.probing.made import HEADS, D, Made, after, layer, tokens
from tokenflock.errors import UserError
from tokenflock.parts import CausalMask, NoMask, Post, Pre
from tokenflock.probing import (
    block_of,
    effective_beta,
    particle_system,
    probe,
    reconstruction,
    rerun_layer,
)
from tokenflock.probing.blocks import KNOWN

KINDS = [(pre, causal) for pre in (False, True) for causal in (False, True)]
W = np.array([0.1, 0.3, 0.0, 0.2, 0.4, 0.0])  # two tokens are not there


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("pre", "causal"), KINDS)
def test_a_layer_is_its_formula(pre, causal):
    one, x = layer(pre=pre, causal=causal), tokens(len(W))
    A = np.asarray(one.attention_by_head(x, W))
    np.testing.assert_allclose(A, made.attention(one, x, W), atol=1e-12)
    np.testing.assert_allclose(A.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(one.attend(x, W), made.attended(one, x, W), atol=1e-12)
    np.testing.assert_allclose(one.after_attention(x, W), made.between(one, x, W), atol=1e-12)
    np.testing.assert_allclose(one(x, W), after(one, x, W), atol=1e-12)
    assert one.heads == HEADS


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("causal", [False, True])
def test_logits_of_any_size_give_attention(causal):
    one, x = layer(causal=causal, scale=1e4), tokens(len(W))
    A = np.asarray(one.attention_by_head(x, W))
    np.testing.assert_allclose(A, made.attention(one, x, W), atol=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", KNOWN)
def test_the_feed_forward_part_is_that_of_its_activation(name):
    one, x = layer(activation=name), tokens(4)
    np.testing.assert_allclose(one.feed(x), made.fed(one, x), atol=1e-9)
    assert set(made.ACTIVATIONS) == set(KNOWN)


def test_a_layer_as_a_block_holds_its_parts():
    for pre, causal in KINDS:
        one = layer(pre=pre, causal=causal)
        block = one.as_block()
        assert block.mask == (CausalMask() if causal else NoMask()) and block.beta == one.scale
        assert isinstance(block.norm, Pre if pre else Post)
        assert np.array_equal(block.norm.first.gain, one.first.gain)
        assert np.array_equal(block.norm.second.gain, one.second.gain)
        for name in "QKVOqkvo":
            assert np.array_equal(getattr(block.heads, name), getattr(one, name)), name
        feed = block.feed_forward
        assert np.array_equal(feed.W, one.W) and np.array_equal(feed.A, one.A)
    assert block_of(Made([layer(1), layer(2)], depth=5), 3).beta == layer(2).scale
    with pytest.raises(UserError, match="layer must be from 0 to 4, got -1"):
        block_of(Made([layer(1)], depth=5), -1)


def test_a_layer_without_biases_keeps_those_inside():
    one = layer()
    bare = one.without_biases()
    for name in ("q", "k", "v", "o", "b"):
        assert getattr(bare, name).shape == getattr(one, name).shape
        assert not getattr(bare, name).any() and getattr(one, name).any()
    for name in ("Q", "K", "V", "O", "A", "a", "W"):
        assert np.array_equal(getattr(bare, name), getattr(one, name))
    assert np.array_equal(bare.first.shift, one.first.shift) and one.first.shift.any()


def test_a_layer_is_run_again_on_the_tokens_that_are_there():
    one, x = layer(pre=True, causal=True), tokens(6)
    there = np.array([1, 1, 1, 1, 0, 0], bool)
    ours = rerun_layer(one, x, there)
    np.testing.assert_allclose(ours[:4], after(one, x[:4], np.full(4, 0.25)), atol=1e-12)
    assert ours.dtype == np.float64 and rerun_layer(one, x, dtype="float32").dtype == np.float32
    np.testing.assert_allclose(rerun_layer(one, x), after(one, x, np.full(6, 1 / 6)), atol=1e-12)
    with pytest.raises(UserError, match=r"tokens of shape \(n, d\)"):
        rerun_layer(one, x[None])


def test_a_reconstruction_is_the_largest_deviation_of_each_layer():
    """Layers are passed again in turn; number 0 is a token, and what is not there does not
    count.
    """
    model = Made([layer(1, pre=True), layer(2, pre=True)], depth=3)
    result = probe(model, ["abcde", "bcaa"])
    assert float(reconstruction(model.blocks(), result).max()) < 1e-10
    x = result.x.values.copy()
    x[1, 3, 2] -= np.linspace(0.1, 0.5, D)  # after the last layer: only that one is off
    x[1, 3, 4] = 9.0  # no token
    found = reconstruction(model.blocks(), result.assign(x=(result.x.dims, x)))
    assert found.dims == ("prompt", "layer") and found.layer.values.tolist() == [1, 2, 3]
    np.testing.assert_allclose(found, [[0, 0, 0], [0, 0, 0.5]], atol=1e-10)


def test_what_the_matrices_of_a_model_say():
    layers = [layer(1, pre=True), layer(2)]
    found = particle_system(Made(layers))
    for k, one in enumerate(layers):
        here = found.isel(block=k)
        for name in "QKVO":
            np.testing.assert_array_equal(here[name], getattr(one, name))
        np.testing.assert_array_equal(here.gain, [one.first.gain, one.second.gain])
        norm = one.first if one.pre else one.second  # what attention reads
        radius = np.sqrt((norm.gain**2).sum() + (norm.shift**2).sum())
        np.testing.assert_allclose(here.radius, radius)
        sizes = [np.sqrt(((Q.T @ K) ** 2).sum()) for Q, K in zip(one.Q, one.K)]
        beta = one.scale * radius**2 * np.array(sizes) / np.sqrt(D)
        np.testing.assert_allclose(here.beta, beta)
        np.testing.assert_allclose(effective_beta(one, 1.5), beta * (1.5 / radius) ** 2)
        for h in range(HEADS):
            check_spectrum(here["values"][h].values, one.O[h] @ one.V[h])
            check_spectrum(here["attraction"][h].values, one.Q[h].T @ one.K[h])
        whole = sum(O @ V for O, V in zip(one.O, one.V))
        check_spectrum(here["values_of_all"].values, whole)
    assert found.attrs["model"] == "made" and found.attrs["d"] == D
    assert found.norm.values.tolist() == ["first", "second"]
    assert found.part.values.tolist() == ["real", "imaginary"]


def check_spectrum(ours, matrix):
    """All that are not zero, the largest first: power sums are traces of powers."""
    values = ours[:, 0] + 1j * ours[:, 1]
    assert (np.diff(np.abs(values)) < 1e-12).all()
    for power in (1, 2, 3):
        trace = np.trace(np.linalg.matrix_power(matrix, power))
        np.testing.assert_allclose((values**power).sum(), trace, atol=1e-10)


def test_a_model_that_is_loaded_keeps_its_numbers_and_one_that_is_not_runs_in_single(monkeypatch):
    asked = []

    def loading(model, variant):
        asked.append(variant)
        return Made([layer()])

    monkeypatch.setattr("tokenflock.probing.particles.load", loading)
    particle_system("a folder", heads=2, untrained=True, seed=3)
    particle_system(Made([layer()]))
    assert [(one.dtype, one.device) for one in asked] == [("float32", "cpu"), (None, None)]
    assert (asked[0].heads, asked[0].untrained, asked[0].seed) == (2, True, 3)

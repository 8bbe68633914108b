"""The extraction is right: a layer run again from its matrices gives the next hidden state."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.probing.conftest import CONFIGS, EXTRACTED, SMALL, ids, small, torch
from tests.probing.test_statistics import real_prompts
from tokenflock.dynamics import Block
from tokenflock.errors import UserError
from tokenflock.precision import precision
from tokenflock.probing import (
    Recording,
    choose,
    extract,
    follow,
    load,
    particle_system,
    probe,
    reconstruction,
)
from tokenflock.solvers import Layer


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXTRACTED)
def test_a_layer_run_again_from_its_matrices(kind):
    model, prompts = small(kind), ids(9, 5)
    again = reconstruction(extract(load(model)), probe(model, prompts))
    assert again.shape == (2, 3) and float(again.max()) < 1e-4


@pytest.mark.slow
def test_attention_of_the_matrices_is_that_of_the_model():
    model, (prompt,) = small("gpt2"), ids(7)
    told = probe(model, [prompt], record=Recording(attention=True))
    block, x = extract(load(model))[0], told.x[0, 0].values
    ours = np.asarray(block.attention_by_head(block.first(x), np.full(7, 1 / 7)))
    np.testing.assert_allclose(ours, told.attention[0, 1], atol=1e-5)


def test_the_real_bert_run_again(minilm):
    result = probe(minilm, "Attention moves every token towards the tokens that it listens to.")
    assert float(reconstruction(extract(load(minilm)), result).max()) < 1e-4


def test_the_real_alberts_run_again(albert):
    result = probe(albert, real_prompts(albert)[:1], depth=6)
    assert float(reconstruction(extract(load(albert)), result).max()) < 1e-4


def test_spectra_and_temperatures(tmp_path):
    model = small("bert")
    found = particle_system(model)
    block = extract(load(model))[1]
    whole = block.O[0] @ block.V[0]
    expected = np.linalg.eigvals(whole)
    expected = expected[np.argsort(-abs(expected))][: found.sizes["m"]]
    ours = found["values"][1, 0].values
    np.testing.assert_allclose(np.sort(ours[:, 0]), np.sort(expected.real), atol=1e-8)
    assert found.beta.dims == ("block", "head") and (found.beta > 0).all()
    assert flock.load(flock.save(found, tmp_path / "system.nc")).sizes["block"] == 3


def test_beta_is_that_of_the_identity():
    """With Q^T K = c I and tokens of length R the effective beta is scale R^2 c."""
    import equinox as eqx

    from tokenflock.probing import effective_beta

    block = extract(load(small("bert")))[0]
    d = block.Q.shape[2]
    block = eqx.tree_at(lambda one: (one.Q, one.K), block, (3 * np.eye(d)[None], np.eye(d)[None]))
    np.testing.assert_allclose(effective_beta(block, radius=2.0), block.scale * 4 * 3)


@pytest.mark.slow
def test_the_idealised_model_beside_the_real_one():
    found = follow(small("albert"), ids(8, 6), depth=5)
    assert found.mean_cosine.dims == ("system", "prompt", "layer") and found.sizes["layer"] == 6
    exact = found.sel(system="everything")
    assert float(abs(exact.mean_cosine - found.mean_cosine.sel(system="model")).max()) < 1e-4
    assert float(exact.alignment.min()) > 1 - 1e-5 and float(exact.histogram_distance.max()) < 0.02
    np.testing.assert_allclose(found.alignment.isel(layer=0), 1, atol=1e-5)
    assert float(found.alignment.sel(system="attention", layer=5).mean()) < 0.999


def test_without_biases_the_idealised_attention_is_exact_in_one_pass():
    """A model without biases whose norms only project (gain one, no shift, tokens of mean zero) is
    the library's own.
    """
    model = small("albert")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif "ayer_norm" in name or "LayerNorm" in name:
                parameter.fill_(1.0)
            elif (
                "attention.dense.weight" in name
                or "ffn_output.weight" in name
                or "mapping_in.weight" in name
            ):
                # outputs have mean zero, so that layer norm is the sphere of radius sqrt(d)
                parameter.sub_(parameter.mean(dim=0))
    found = follow(model, ids(8), depth=3)
    assert float(found.alignment.sel(system="normalisation").min()) > 1 - 1e-5
    assert (
        float(found.alignment.sel(system="feed-forward").min()) > 0.97
    )  # the first pass starts off that sphere


def test_unknown_matrices_are_said():
    with pytest.raises(UserError, match="llama are not known"):
        extract(load(small("llama")))


def test_a_decoder_that_normalises_before_is_followed_too():
    """GPT-2: everything is exact. Where norms have gain one and no shift, biases and feed-forward
    parts are zero, and tokens have mean zero and one length, the first layer is the idealised
    attention."""
    model = small("gpt2")
    assert float(follow(model, ids(8, 6)).sel(system="everything").alignment.min()) > 1 - 1e-5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "mlp.c_proj" in name or "wpe" in name:
                parameter.zero_()
            elif "ln_" in name:
                parameter.fill_(1.0)
            elif "attn.c_proj.weight" in name or "wte" in name:
                parameter.sub_(parameter.mean(dim=-1, keepdim=True))
            if "wte" in name:
                parameter.div_(parameter.std(dim=-1, keepdim=True))
    alignment = follow(model, ids(8)).alignment.isel(prompt=0)
    assert float(alignment.sel(system="attention", layer=1)) > 1 - 1e-5
    assert float(alignment.sel(system="feed-forward", layer=1)) > 1 - 1e-5
    assert float(alignment.sel(system="attention", layer=3)) > 0.95  # then lengths differ


def sphere_decoder(*, attends: bool, feeds: bool):
    """A GPT-2 without biases and positions whose norms only project and whose tokens have mean zero
    and one length, 4; a part that is left out adds nothing.
    """
    model = small("gpt2")
    silent = [name for name, kept in (("attn", attends), ("mlp", feeds)) if not kept]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            quiet = any(f"{part}.c_proj" in name for part in silent)
            if quiet or name.endswith("bias") or "wpe" in name:
                parameter.zero_()
            elif "ln_" in name:
                parameter.fill_(1.0)
            elif "wte" in name:
                parameter.sub_(parameter.mean(dim=-1, keepdim=True))
                parameter.div_(parameter.std(dim=-1, keepdim=True, correction=0))
    return model


def test_what_the_feed_forward_part_of_a_decoder_adds_is_divided_by_the_length_of_tokens():
    """x + mlp(norm x) with |x| = R has the direction of u + mlp(norm x) / R: without attention the
    first layer is exact.
    """
    model = sphere_decoder(attends=False, feeds=True)
    alignment = follow(model, ids(8)).alignment.isel(prompt=0, layer=1)
    assert float(alignment.sel(system="feed-forward")) > 1 - 1e-5
    assert float(alignment.sel(system="attention")) < 0.99  # the part does something


def test_what_the_attention_of_a_decoder_adds_is_divided_by_the_length_of_tokens():
    model = sphere_decoder(attends=True, feeds=False)
    alignment = follow(model, ids(8)).alignment.isel(prompt=0, layer=1)
    assert float(alignment.sel(system="attention")) > 1 - 1e-5
    assert float(alignment.sel(system="feed-forward")) > 1 - 1e-5


def test_texts_are_longer_than_the_minimum():
    """The rule of Figure 1 is more than 300 tokens: one of 300 is too short, one of 301 is not."""
    loaded, prompts = load(small("bert")), ids(10, 11, 9, 12)
    assert choose(loaded, prompts, minimum=10) == [prompts[1], prompts[3]]
    assert choose(loaded, prompts, minimum=9) == [prompts[0], prompts[1], prompts[3]]
    assert choose(loaded, prompts, minimum=11, length=5) == [prompts[3]]
    with pytest.raises(UserError, match="no text has more than 12 tokens: the longest has 12"):
        choose(loaded, prompts, minimum=12)


def test_the_temperature_is_that_of_the_norm_which_attention_reads():
    """Of a pre-LN model the first norm, of a post-LN model the last of the layer before."""
    from tokenflock.probing import effective_beta

    def beta(kind, name, factor):
        model = small(kind)
        with torch.no_grad():
            norm = dict(model.named_modules())[name]
            norm.weight.fill_(factor)
            norm.bias.zero_()
        return effective_beta(extract(load(model))[0])

    for kind, read, other in (
        ("gpt2", "h.0.ln_1", "h.0.ln_2"),
        ("bert", "encoder.layer.0.output.LayerNorm", "encoder.layer.0.attention.output.LayerNorm"),
    ):
        np.testing.assert_allclose(beta(kind, read, 2.0), 4 * beta(kind, read, 1.0), rtol=1e-5)
        np.testing.assert_allclose(beta(kind, other, 2.0), beta(kind, other, 1.0), rtol=1e-6)


def test_a_model_that_reserves_places_has_less_room():
    model = small("roberta")
    assert load(model).facts.room == model.config.max_position_embeddings - 2


@pytest.mark.parametrize(("layers", "groups"), [(4, 2), (5, 3), (6, 2)])
def test_an_albert_with_groups_runs_again_from_its_matrices(layers, groups, monkeypatch):
    """transformers passes group int(k / (layers / groups)) at layer k, not k % groups."""
    options = SMALL | {
        "embedding_size": 8,
        "num_hidden_layers": layers,
        "num_hidden_groups": groups,
    }
    monkeypatch.setitem(CONFIGS, "albert", ("AlbertConfig", options))
    model, prompts = small("albert"), ids(9, 5)
    result = probe(model, prompts)
    assert float(reconstruction(extract(load(model)), result).max()) < 1e-5
    assert float(follow(model, prompts).sel(system="everything").alignment.min()) > 1 - 1e-6
    x = result.x[0].values
    for k in range(layers):
        with precision("float64"):
            w = jnp.full(9, 1 / 9)
            block, before = Block.from_model(model, k), jnp.asarray(x[k], float)
            after = Layer(h=1.0).step(block, jnp.zeros(()), before, w, jax.random.key(0))
        np.testing.assert_allclose(after, x[k + 1], atol=1e-5)


def test_an_albert_with_several_layers_in_a_group_is_refused(monkeypatch):
    """It has several hidden states per layer of its config, so that half would be recorded."""
    options = SMALL | {"embedding_size": 8, "inner_group_num": 2}
    monkeypatch.setitem(CONFIGS, "albert", ("AlbertConfig", options))
    with pytest.raises(UserError, match="inner_group_num of the model must be 1, got 2"):
        probe(small("albert"), ids(9))

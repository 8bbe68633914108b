"""What probe measures is what torch has: layer by layer, for every architecture, trained or not,
padded or not.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tests.probing.conftest import CONFIGS, EXTRACTED, ids, small, torch, transformers
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.probing import (
    Recording,
    Selection,
    Variant,
    extract,
    half_layers,
    load,
    probe,
    survey,
    texts,
)

SHARE = PairDensity(delta=0.1)


def directly(model, row, depth=None):
    """Mean cosine and share above 0.9 over pairs i != j of each layer, by torch alone."""
    found = []
    with torch.no_grad():
        states = model(input_ids=torch.tensor([row]), output_hidden_states=True).hidden_states
    for state in states:
        u = torch.nn.functional.normalize(state[0].double(), dim=-1)
        pairs = (u @ u.T)[~torch.eye(len(row), dtype=torch.bool)]
        found.append((pairs.mean().item(), (pairs >= 0.9).double().mean().item()))
    return np.array(found).T


def check(result, p, expected, last=True, tolerance=1e-5):
    one = result.isel(prompt=p)
    measured = one if "pair_density" in one else flock.measure(one, [MeanCosine(), SHARE])
    end = None if last else -1
    np.testing.assert_allclose(measured.mean_cosine[:end], expected[0][:end], atol=tolerance)
    np.testing.assert_allclose(measured.pair_density[:end], expected[1][:end], atol=tolerance)


def test_every_architecture_as_torch_has_it(kind):
    model, prompts = small(kind), ids(12, 7)
    result = probe(model, prompts)
    for p, prompt in enumerate(prompts):
        check(result, p, directly(model, prompt.ids), last=not decoder(kind))
    assert result.x.dims == ("prompt", "layer", "token", "coord") and result.sizes["layer"] == 4


def decoder(kind):
    return kind in ("gpt2", "gpt_neox", "llama", "gemma", "gemma2")


def test_the_last_layer_is_the_stream_and_after_the_final_norm_on_request(kind):
    model, (prompt,) = small(kind), ids(9)
    plain, final = probe(model, [prompt]), probe(model, [prompt], record=Recording(final_norm=True))
    with torch.no_grad():
        told = model(input_ids=torch.tensor([prompt.ids])).last_hidden_state[0].numpy()
    np.testing.assert_allclose(final.x[0, -1], told, atol=1e-5)
    assert np.allclose(plain.x[0, -1], told, atol=1e-3) != decoder(kind)


@pytest.mark.slow
def test_padding_changes_no_number(kind):
    model, prompts = small(kind), ids(5, 14, 9)
    record = Recording(entropy=True, sublayers=True)
    together = probe(model, prompts, observe=survey(), record=record, batch=3)
    for p, prompt in enumerate(prompts):
        alone = probe(model, [prompt], observe=survey(), record=record)
        n = len(prompt.ids)
        for name in ("x", "x_attention"):
            np.testing.assert_allclose(together[name][p, :, :n], alone[name][0], atol=1e-5)
            assert not together[name][p, 1:, n:].any()
        np.testing.assert_allclose(
            together.attention_entropy[p, 1:, :, :n], alone.attention_entropy[0, 1:], atol=1e-5
        )
        for name in (
            "mean_cosine",
            "pair_density",
            "effective_rank",
            "energies",
            "cluster_count",
            "histogram",
        ):
            np.testing.assert_allclose(
                together[name][p], alone[name][0], atol=1e-4 if name == "effective_rank" else 1e-5
            )


def test_the_sublayers_are_the_two_halves_of_a_layer(kind):
    """After attention alone the stream is neither the layer before nor the layer after, and half
    layers fit in order.
    """
    result = probe(small(kind), ids(8), record=Recording(sublayers=True))
    both = half_layers(result)
    np.testing.assert_array_equal(both.layer, np.arange(7) / 2)
    np.testing.assert_array_equal(both.x.sel(layer=[0, 1, 2, 3]), result.x)
    steps = abs(both.x.diff("layer")).max(["prompt", "token", "coord"])
    assert (steps > 1e-3).all() and np.isfinite(flock.measure(both, MeanCosine()).mean_cosine).all()


ATTENTION = {
    "gpt2": "attn",
    "gpt_neox": "attention",
    "llama": "self_attn",
    "gemma": "self_attn",
    "gemma2": "post_attention_layernorm",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXTRACTED)
def test_after_attention_is_that_of_its_own_block(kind):
    """Each block's own matrices, applied to the layer before, give the stream after its
    attention.
    """
    model, prompts = small(kind), ids(8)
    result = probe(model, prompts, record=Recording(sublayers=True))
    blocks = extract(load(model))
    for layer in range(1, 4):
        block = blocks[(layer - 1) % len(blocks)]
        between = block.after_attention(result.x[0, layer - 1].values, np.full(8, 1 / 8))
        np.testing.assert_allclose(result.x_attention[0, layer], between, atol=1e-4)


@pytest.mark.parametrize("kind", ATTENTION)
def test_after_attention_is_the_layer_before_and_what_attention_adds(kind):
    """Decoders: torch tells what the attention of each block adds."""
    model, prompts, added = small(kind), ids(8), []
    hooks = [
        block.get_submodule(ATTENTION[kind]).register_forward_hook(
            lambda _, __, out: added.append((out[0] if isinstance(out, tuple) else out).detach())
        )
        for block in (model.h if kind == "gpt2" else model.layers)
    ]
    with torch.no_grad():
        model(input_ids=torch.tensor([prompts[0].ids]))
    for hook in hooks:
        hook.remove()
    result = probe(model, prompts, record=Recording(sublayers=True))
    assert len(added) == 3 and np.isnan(result.x_attention[0, 0]).all()
    for layer, part in enumerate(added, start=1):
        expected = result.x[0, layer - 1] + part.reshape(8, 16).numpy()
        np.testing.assert_allclose(result.x_attention[0, layer], expected, atol=1e-5)


def test_after_attention_of_a_few_layers_is_theirs(kind):
    model, prompts = small(kind), ids(8)
    few, every = (
        probe(model, prompts, record=Recording(sublayers=True, layers=one))
        for one in ([1, 3], None)
    )
    np.testing.assert_array_equal(few.x_attention, every.x_attention.sel(layer=[1, 3]))


def test_attention_is_the_model_s_own(kind):
    model, (prompt,) = small(kind), ids(6)
    found = probe(model, [prompt], record=Recording(attention=True, entropy=True))
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    with torch.no_grad():
        told = own(input_ids=torch.tensor([prompt.ids]), output_attentions=True).attentions
    assert np.isnan(found.attention[0, 0]).all() and len(told) == found.sizes["layer"] - 1
    for layer, matrix in enumerate(told, start=1):
        np.testing.assert_allclose(found.attention[0, layer], matrix[0], atol=1e-6)
    assert abs(told[0] - told[1]).max() > 1e-3  # layers can be told apart
    np.testing.assert_allclose(found.attention[0, 1:].sum("other"), 1, atol=1e-5)
    rows = found.attention[0, 1:].values
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(rows > 0, rows * np.log(rows), 0).sum(-1)
    np.testing.assert_allclose(found.attention_entropy[0, 1:], entropy, atol=1e-5)
    if decoder(kind):
        assert not np.triu(rows[0, 0], 1).any()


def test_a_shared_layer_runs_past_its_depth():
    model, (prompt,) = small("albert"), ids(10)
    result = probe(model, [prompt], depth=9)
    assert result.sizes["layer"] == 10 and model.config.num_hidden_layers == 3
    deep = transformers.AlbertModel(
        transformers.AlbertConfig(**model.config.to_dict() | {"num_hidden_layers": 9})
    ).eval()
    deep.load_state_dict(model.state_dict())
    check(result, 0, directly(deep, prompt.ids))


def test_heads_are_a_cut_of_the_same_weights():
    """One head, as the published notebook ran its second half: the same numbers as a config with
    one head.
    """
    model, (prompt,) = small("albert"), ids(10)
    single = transformers.AlbertModel(
        transformers.AlbertConfig(**model.config.to_dict() | {"num_attention_heads": 1})
    ).eval()
    single.load_state_dict(model.state_dict())
    result = probe(model, [prompt], variant=Variant(heads=1))
    check(result, 0, directly(single, prompt.ids))
    assert (
        abs(result.x - probe(model, [prompt]).x).max() > 1e-2
        and model.config.num_attention_heads == 2
    )


def test_special_and_first_tokens_count_or_not():
    model = small("bert")
    marked = [texts.Text("marked", tuple(range(3, 15)), special=(0, 11))]
    result = probe(model, marked, tokens=Selection(special=False))
    plain = probe(model, marked)
    np.testing.assert_allclose(plain.x, result.x)
    assert (result.w[0] > 0).values.tolist() == [False, *[True] * 10, False]
    inner = directly_between(plain, slice(1, 11))
    np.testing.assert_allclose(flock.measure(result, MeanCosine()).mean_cosine[0], inner, atol=1e-6)
    later = probe(model, marked, tokens=Selection(first=False))
    assert float(later.w[0, 0]) == 0 and float(plain.w[0, 0]) > 0


def directly_between(result, place):
    x = result.x[0, :, place].values.astype(float)
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    n = u.shape[1]
    return [(one @ one.T)[~np.eye(n, dtype=bool)].mean() for one in u]


@pytest.mark.slow
def test_a_file_written_prompt_by_prompt_holds_the_same(tmp_path):
    model, prompts, shares = small("bert"), ids(6, 11, 8), []
    kept = probe(model, prompts, observe=survey(), batch=2)
    filed = probe(
        model, prompts, observe=survey(), batch=2, out=tmp_path / "probe.nc", progress=shares.append
    )
    assert shares == [pytest.approx(2 / 3), 1.0] and [path.name for path in tmp_path.iterdir()] == [
        "probe.nc"
    ]
    again = flock.load(tmp_path / "probe.nc")
    for name in kept.variables:
        np.testing.assert_array_equal(again[name], kept[name])
        np.testing.assert_array_equal(filed[name], kept[name])
    assert again.attrs["recipe"] == kept.attrs["recipe"] and set(again.coords) == set(kept.coords)
    assert flock.load(flock.save(kept, tmp_path / "whole.nc")).x.dims == kept.x.dims


def test_layers_lengths_and_the_recipe():
    model = small("gpt2")
    result = probe(
        model,
        ids(20),
        variant=Variant(dtype="float64"),
        record=Recording(layers=[0, -1], normalise=True),
        tokens=Selection(length=8),
    )
    np.testing.assert_allclose((result.x**2).sum("coord"), 1)
    assert (
        result.layer.values.tolist() == [0, 3]
        and result.sizes["token"] == 8
        and result.x.dtype == np.float64
    )
    recipe = json.loads(result.attrs["recipe"])
    assert (
        recipe["architecture"] == "gpt2"
        and len(recipe["sha256"]) == 64
        and "torch" in recipe["versions"]
    )


def test_untrained_is_fresh_and_repeatable():
    model, prompt = small("albert"), ids(8)
    first, again, other = (
        probe(model, prompt, variant=Variant(untrained=True, seed=seed)).x for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert abs(first - other).max() > 1e-3 and abs(first - probe(model, prompt).x).max() > 1e-3


def test_every_plot_takes_a_prompt_of_a_model():
    from tokenflock.plots import (
        attention,
        histogram,
        histogram_over_time,
        overview,
        timeline,
        trajectories,
    )

    one = probe(small("bert"), ids(9, 12), record=Recording(attention=True)).isel(prompt=0)
    for draw in (overview, histogram, histogram_over_time, timeline, trajectories):
        assert draw(one).get_figure(root=True).axes
    assert attention(one.assign(attention=one.attention.mean("head")), at=3).images


def test_the_real_bert_as_torch_has_it(minilm):
    words = [
        "Clusters of tokens form on the sphere, and after a long wait they merge.",
        "Attention moves tokens.",
    ]
    result = probe(minilm, words)
    model, tokenizer = (
        transformers.AutoModel.from_pretrained(minilm),
        transformers.AutoTokenizer.from_pretrained(minilm),
    )
    for p, text in enumerate(words):
        check(result, p, directly(model, tokenizer(text)["input_ids"]))
    assert result.word[0, 0] == "[CLS]" and result.special[0, :3].values.tolist() == [1, 0, 0]


def test_a_pair_at_the_threshold_is_put_on_its_own_side():
    """Pairs of single-precision tokens with cosine 0.9 up to 1e-8: double precision tells their
    sides, single does not.
    """
    from tokenflock.probing.layers import _measured

    random = np.random.default_rng(0)
    a, b = np.linalg.qr(random.normal(size=(500, 16, 2)))[0].transpose(2, 0, 1)
    x = np.stack([a, 0.9 * a + np.sqrt(1 - 0.81) * b], axis=1).astype(np.float32)
    exact = x.astype(float) / np.linalg.norm(x.astype(float), axis=-1, keepdims=True)
    expected = ((exact[:, 0] * exact[:, 1]).sum(-1) >= 0.9).astype(float)
    block = xr.Dataset({"x": (("layer", "token", "coord"), x), "w": ("token", [0.5, 0.5])})
    np.testing.assert_array_equal(_measured(block, [SHARE]).pair_density, expected)
    assert (flock.measure(block, SHARE).pair_density != expected).any()


@pytest.mark.parametrize("depth", [12, 48])
def test_the_real_alberts_as_torch_has_them(albert, depth):
    prompts = real_prompts(albert)
    model = transformers.AlbertModel.from_pretrained(
        albert, num_hidden_layers=depth, dtype=torch.float32
    ).eval()
    result = probe(albert, prompts, depth=depth, observe=[MeanCosine(), SHARE])
    for p, prompt in enumerate(prompts):
        check(result, p, directly(model, prompt.ids))


def real_prompts(folder):
    lying = texts.beside(folder)
    return lying[:1] if lying else [texts.Text("", (12, *range(16, 60), 13))]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_the_same_picture(dtype):
    """Tokens come back in single precision.

    The mean cosine is that of single precision to a few of the eight bits.
    """
    model, prompts = small("albert"), ids(30, 20)
    half, single = (
        probe(copy.deepcopy(model), prompts, variant=Variant(dtype=kind), observe=[MeanCosine()])
        for kind in (dtype, "float32")
    )
    assert half.x.dtype == np.float32
    np.testing.assert_allclose(half.mean_cosine, single.mean_cosine, atol=0.02)


def test_all_architectures_are_here():
    assert len(CONFIGS) == 9


def test_what_fills_a_shorter_prompt_is_nothing():
    found = probe(small("bert"), ids(5, 9, 7), record=Recording(attention=True), batch=3)
    here, gone = found.isel(prompt=0, token=slice(0, 5)), found.isel(prompt=0, token=slice(5, None))
    assert not gone.w.any() and not gone.special.any() and not gone.x[1:].any()
    assert (gone.id == -1).all() and (gone.word == "").all()
    assert not gone.attention[1:].any() and not here.attention[1:, ..., 5:].any()
    np.testing.assert_allclose(here.attention[1:].sum("other"), 1, atol=1e-5)

"""What is read off a torch model, number by number, with tensors that are known."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.probing.conftest import ids, small, torch
from tokenflock.errors import SimulationError, UserError
from tokenflock.probing import Recording, Variant, hooks, probe, recording
from tokenflock.probing.architectures.architecture import Tap
from tokenflock.probing.model import Prompt


def prompt(*numbers):
    row = np.array(numbers)
    return Prompt("", row, np.zeros(len(row), bool), tuple(map(str, numbers)))


@pytest.mark.parametrize(("pad", "fill"), [(None, 0), (-1, 0), (0, 0), (7, 7), ([7], 0)])
def test_shorter_texts_are_filled_with_the_token_of_the_config(pad, fill):
    network = SimpleNamespace(
        config=SimpleNamespace(pad_token_id=pad), parameters=lambda: iter([torch.zeros(1)])
    )
    rows, mask = recording._padded(network, [prompt(3, 4), prompt(5, 6, 7)])
    assert rows.tolist() == [[3, 4, fill], [5, 6, 7]] and mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert rows.dtype == torch.long


@pytest.mark.parametrize(("cache", "off"), [(True, False), (False, False), (None, None)])
def test_a_model_is_as_before_when_its_run_ends(cache, off):
    config = SimpleNamespace(num_hidden_layers=3, use_cache=cache, _attn_implementation="sdpa")
    network = SimpleNamespace(config=config, set_attn_implementation=lambda way: ways.append(way))
    for depth, attention, told in ((3, False, []), (5, True, ["eager"])):
        ways = []
        with recording.running(network, depth, attention):
            assert config.num_hidden_layers == depth and config.use_cache is off
            assert ways == told and torch.is_inference_mode_enabled()
        assert config.num_hidden_layers == 3 and config.use_cache is cache
        assert ways == [*told, "sdpa"][: 2 * len(told)] and not torch.is_inference_mode_enabled()


def test_a_block_ends_at_the_layer_after_it():
    assert recording._at_layers(["first", "second", "third"], (0, 1, 3)) == [None, "first", "third"]


HERE = torch.tensor([[True, True, False], [True, True, True]])


def streams(dtype):
    return torch.arange(1.0, 13.0, dtype=dtype).reshape(2, 3, 2)


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_states_keep_their_numbers_and_their_precision(name):
    x = streams(getattr(torch, name))
    found = recording._states([None, x, 2 * x], HERE, 4, False, "x")
    assert found.dtype == (np.float64 if name == "float64" else np.float32)
    assert found.shape == (2, 3, 4, 2) and np.isnan(found[:, 0]).all()
    numbers = np.arange(1.0, 13.0).reshape(2, 3, 2)
    numbers[0, 2] = 0  # no token
    for layer in (1, 2):
        np.testing.assert_array_equal(found[:, layer, :3], layer * numbers)
        assert not found[:, layer, 3].any()
    unit = recording._states([x], HERE, 3, True, "x")[:, 0]
    length = np.linalg.norm(numbers, axis=-1, keepdims=True)
    np.testing.assert_allclose(unit, numbers / np.where(length > 0, length, 1), atol=1e-2)
    if name == "float64":
        np.testing.assert_allclose(unit, numbers / np.where(length > 0, length, 1), atol=1e-12)


def test_one_number_that_is_none_is_enough_to_refuse_and_padding_may_be_anything():
    x = streams(torch.float32)
    x[0, 2] = torch.nan
    assert np.isfinite(recording._states([x], HERE, 3, False, "x")).all()
    x[1, 0, 1] = torch.inf
    with pytest.raises(SimulationError, match=r"x left the numbers in torch\.float32"):
        recording._states([x], HERE, 3, False, "x")


def test_attention_and_its_entropy_are_those_of_tokens_that_are_there():
    rows = torch.rand(2, 4, 3, 3, generator=torch.Generator().manual_seed(0))
    found = recording._attention([None, rows], HERE, 5)
    assert found.shape == (2, 2, 4, 5, 5) and np.isnan(found[:, 0]).all()
    expected = np.zeros((2, 4, 5, 5), np.float32)
    expected[0, :, :2, :2], expected[1, :, :3, :3] = rows[0, :, :2, :2], rows[1]
    np.testing.assert_array_equal(found[:, 1], expected)
    entropy = recording._entropy([rows, None], HERE, 5)
    assert entropy.shape == (2, 2, 4, 5) and np.isnan(entropy[:, 1]).all()
    assert np.isnan(entropy[0, 0, :, 2:]).all() and np.isnan(entropy[1, 0, :, 3:]).all()
    sums = -(rows.numpy() * np.log(rows.numpy())).sum(-1)
    np.testing.assert_allclose(entropy[0, 0, :, :2], sums[0, :, :2], rtol=1e-5)
    np.testing.assert_allclose(entropy[1, 0, :, :3], sums[1], rtol=1e-5)


class Layer(torch.nn.Module):
    """Adds its number, then doubles; says more than the stream."""

    def __init__(self, number):
        super().__init__()
        self.attention, self.number = torch.nn.Identity(), number

    def forward(self, hidden_states):
        return (2 * self.attention(hidden_states + self.number), "more")


class Network(torch.nn.Module):
    """Layers in a list, beside another list."""

    def __init__(self, depth=3, by_name=False):
        super().__init__()
        self.others = torch.nn.ModuleList([torch.nn.Identity() for _ in range(5)])
        self.layers = torch.nn.ModuleList([Layer(k + 1) for k in range(depth)])
        self.config, self.by_name = SimpleNamespace(num_hidden_layers=3, model_type="x"), by_name

    def forward(self, x):
        for layer in self.layers:
            x = layer(hidden_states=x)[0] if self.by_name else layer(x)[0]
        return x


def test_layers_are_the_list_as_long_as_the_config_says():
    network = Network()
    assert hooks.blocks(network) == list(network.layers)
    assert hooks.blocks(Network(depth=4)) == []
    network._can_record_outputs = {"hidden_states": Layer}
    assert hooks.blocks(network) == list(network.layers)


@pytest.mark.parametrize("by_name", [False, True])
def test_the_stream_is_caught_at_any_side_of_a_part(by_name):
    """From x = 1: after the layers 4, 12, 30; what goes into attention, and comes out of it, is
    2, 6, 15, and with what goes into the block 3, 10, 27.
    """
    network, x = Network(by_name=by_name), torch.ones(1)
    for side, told in (("input", [2, 6, 15]), ("output", [2, 6, 15]), ("added", [3, 10, 27])):
        with hooks.after_attention(network, Tap("attention", side)) as caught:
            network(x)
        assert [float(one) for one in caught] == told
        network(x)
        assert len(caught) == 3  # hooks are gone
    with hooks.last_output(network) as last:
        assert last() is None
        network(x)
        assert float(last()) == 30
    network(2 * x)
    assert float(last()) == 30
    with hooks.last_output(Network(depth=4)) as last:
        assert last() is None


def test_a_part_that_is_called_by_name_is_read_too():
    network = Network()
    for layer in network.layers:
        layer.attention = Named()
    with hooks.after_attention(network, Tap("attention.inner", "input")) as caught:
        network(torch.ones(1))
    assert [float(one) for one in caught] == [2, 6, 15]


class Named(torch.nn.Module):
    """Calls what is inside by name."""

    def __init__(self):
        super().__init__()
        self.inner = Plain()

    def forward(self, x):
        return self.inner(hidden_states=x)


class Plain(torch.nn.Module):
    def forward(self, hidden_states):
        return hidden_states


def test_where_attention_ends_must_be_known():
    with pytest.raises(UserError, match="does not know where x ends its attention"):
        recording._between(Network())


@pytest.mark.parametrize("kind", ["albert", "roberta", "gpt2", "gpt_neox"])
def test_in_float64_padding_changes_nothing_even_in_a_deep_model(kind):
    depth, record = 48 if kind == "albert" else None, Recording(sublayers=True)
    variant = Variant(depth=depth, dtype="float64")
    together = probe(small(kind), ids(5, 30), record=record, variant=variant)
    alone = probe(small(kind), ids(5), record=record, variant=variant)
    assert json.loads(together.attrs["recipe"])["dtype"] == "float64"
    for name in ("x", "x_attention"):
        assert together[name].dtype == np.float64
        here = together[name][0, :, :5]
        np.testing.assert_allclose(here, alone[name][0], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", ["albert", "roberta", "gpt2", "gpt_neox"])
def test_a_batch_of_texts_is_each_of_them_alone(kind):
    model, prompts = small(kind), ids(5, 9, 7)
    record = Recording(attention=True, entropy=True, sublayers=True)
    together = probe(model, prompts, record=record, batch=3)
    for p, one in enumerate(prompts):
        alone, n = probe(model, [one], record=record), len(one.ids)
        here = together.isel(prompt=p, token=slice(0, n), other=slice(0, n))
        gone = together.isel(prompt=p, token=slice(n, None))
        for name in ("x", "x_attention", "attention", "attention_entropy"):
            np.testing.assert_allclose(here[name], alone[name][0], atol=1e-5, err_msg=name)
        assert np.isnan(gone.attention_entropy).all()
        assert not gone.x.any() and not gone.x_attention[1:].any() and not gone.attention[1:].any()
        assert np.isnan(together.attention_entropy[p, 0]).all()
        assert np.isnan(together.attention[p, 0]).all()

"""A model of transformers: its facts, its variants, its tokenizer, and its layers as matrices."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from tests.probing.conftest import SMALL, ids, small, torch, transformers
from tokenflock.dynamics import Block
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import UserError
from tokenflock.parts import CausalMask, WindowMask
from tokenflock.probing import Text, Variant, architectures, extract, huggingface, load, probe
from tokenflock.probing.architectures import _matrices, llama
from tokenflock.probing.huggingface import HuggingFaceModel, _depth, _ready, _suffix, _with_heads


def test_a_name_tells_the_variant():
    assert _suffix(Variant()) == "" and _suffix(Variant(heads=1)) == " (1 head)"
    assert _suffix(Variant(untrained=True, seed=3)) == " (untrained, seed 3)"
    assert _suffix(Variant(untrained=True, heads=2)) == " (untrained, seed 0, 2 heads)"


def test_a_gpu_is_used_if_there_is_one(monkeypatch):
    for there, place in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert huggingface.default_device() == place


def test_a_folder_goes_to_the_usual_device_unless_said(monkeypatch):
    """On the device `meta` of torch there are shapes alone."""
    network = transformers.BertModel(transformers.BertConfig(**SMALL))
    monkeypatch.setattr(huggingface, "default_device", lambda: "meta")
    monkeypatch.setattr(huggingface.weights, "source_of", str)
    monkeypatch.setattr(huggingface.weights, "trained", lambda source: network)
    assert load("hub/bert", Variant(device="cpu")).network.device.type == "cpu"
    assert load("hub/bert").network.device.type == "meta"


def test_what_is_no_model_is_refused():
    for wrong in (SimpleNamespace(config=1), SimpleNamespace(base_model=1), 17):
        with pytest.raises(UserError, match="a folder, a name or a transformers model"):
            huggingface.load(wrong)
    with pytest.raises(UserError, match="dtype must be float32 or float64"):
        huggingface.load(small("bert"), Variant(dtype="int8"))


def test_depth_is_a_whole_number_of_passes():
    one = SimpleNamespace(num_hidden_layers=3, num_hidden_groups=1, model_type="albert")
    assert [_depth(one, depth) for depth in (None, 3, 1, 9)] == [3, 3, 1, 9]
    for wrong in (0, -1, 1.5):
        with pytest.raises(UserError, match="depth must be 1 or more"):
            _depth(one, wrong)
    one.num_hidden_groups = 2
    assert _depth(one, 3) == 3
    with pytest.raises(UserError, match="weights of their own"):
        _depth(one, 4)


def test_ready_ids_are_tokens_of_the_model():
    text = Text("t", (0, 9, 4), special=(0, 2))
    found = _ready(text, 8, 10)
    assert found.ids.tolist() == [0, 9, 4] and found.special.tolist() == [1, 0, 1]
    assert found.words == ("0", "9", "4") and found.text == "t"
    short = _ready(text, 2, 10)
    assert (len(short), short.special.tolist(), short.words) == (2, [1, 0], ("0", "9"))
    for wrong in ((), (-1, 3), (3, 10)):
        with pytest.raises(UserError, match="ids must be of tokens from 0 to 9"):
            _ready(Text("", wrong), 8, 10)


class Tokenizer:
    """Letters are tokens between two special ones."""

    def __init__(self, size=40):
        self.size, self.asked = size, []

    def __len__(self):
        return self.size

    def __call__(self, text, **how):
        self.asked.append(how)
        rows = [1, *(ord(letter) - ord("a") + 3 for letter in text), 2][: how["max_length"]]
        return {"input_ids": rows, "special_tokens_mask": [int(one < 3) for one in rows]}

    def convert_ids_to_tokens(self, rows):
        return [f"<{one}>" for one in rows]


def test_a_text_is_read_by_the_tokenizer_of_the_model(monkeypatch):
    model, tokenizer = small("bert"), Tokenizer()
    model.name_or_path = "hub/bert"
    monkeypatch.setattr(huggingface, "fetched", lambda source, fetch: tokenizer)
    loaded = load(model)
    found = loaded.encode(Text("abc"), 4)
    assert found.ids.tolist() == [1, 3, 4, 5] and found.special.tolist() == [1, 0, 0, 0]
    assert found.words == ("<1>", "<3>", "<4>", "<5>") and found.text == "abc"
    how = {"truncation": True, "max_length": 4, "return_special_tokens_mask": True}
    assert tokenizer.asked == [how]
    assert loaded.encode(Text("abc", (7, 8)), 4).ids.tolist() == [7, 8]


def test_a_tokenizer_knows_at_least_half_of_the_tokens(monkeypatch):
    facts = load(small("bert")).facts
    with pytest.raises(UserError, match="without a tokenizer"):
        huggingface._tokenizer(facts, 40)
    facts = SimpleNamespace(source="hub/bert", name="bert")
    for size, known in ((20, True), (19, False)):
        monkeypatch.setattr(huggingface, "fetched", lambda source, fetch, s=size: Tokenizer(s))
        if known:
            assert len(huggingface._tokenizer(facts, 40)) == 20
        else:
            with pytest.raises(UserError, match=r"no tokenizer of its own \(19 tokens where"):
                huggingface._tokenizer(facts, 40)

    def nowhere(source, fetch):
        raise UserError("not here")

    monkeypatch.setattr(huggingface, "fetched", nowhere)
    with pytest.raises(UserError, match=r"no tokenizer that can be loaded; .* \(not here\)"):
        huggingface._tokenizer(facts, 40)


def test_an_activation_that_nobody_knows_is_refused():
    model = small("bert")
    model.config.hidden_act = "mish"
    with pytest.raises(UserError, match="the activation 'mish' is not known"):
        HuggingFaceModel(model, load(small("bert")).facts).blocks()


def test_what_is_known_of_each_architecture():
    known = architectures.known()
    cut = {"albert", "bert", "electra", "distilbert", "gpt2", "roberta", "xlm-roberta", "camembert"}
    assert {name for name, one in known.items() if one.plain_heads} == cut
    assert {name: one.reserved for name, one in known.items() if one.reserved} == dict.fromkeys(
        ("roberta", "xlm-roberta", "camembert"), 2
    )
    shared = {
        name for name, one in known.items() if one.shared(SimpleNamespace(num_hidden_groups=1))
    }
    assert shared == {"albert"} and not known["albert"].shared(SimpleNamespace(num_hidden_groups=2))
    nobody = architectures.architecture("nobody")
    assert nobody.names == ("nobody",) and not nobody.plain_heads and not nobody.reserved
    assert not nobody.shared(None) and nobody.law is None


def affine(random, *shape):
    return random.normal(size=shape), random.normal(size=shape[0])


def test_matrices_are_cut_into_heads():
    """Heads of three dimensions, four of them, on tokens of five: nothing is square."""
    random, heads, m, d = np.random.default_rng(0), 4, 3, 5
    norm = SimpleNamespace(weight=torch.arange(5.0), bias=torch.ones(5), eps=0.1)
    other = SimpleNamespace(weight=torch.ones(5), bias=torch.arange(5.0), eps=0.2)
    three = [affine(random, heads * m, d) for _ in range(3)]
    out, inner, outer = affine(random, d, heads * m), affine(random, 7, d), affine(random, d, 7)
    parts = _matrices.Parts(three, out, inner, outer, norm, other)
    one = _matrices.block(parts, heads, "relu")
    for h in range(heads):
        rows = slice(h * m, (h + 1) * m)
        for (matrix, bias), letter in zip(three, "QKV"):
            np.testing.assert_array_equal(getattr(one, letter)[h], matrix[rows])
            np.testing.assert_array_equal(getattr(one, letter.lower())[h], bias[rows])
        np.testing.assert_array_equal(one.O[h], out[0][:, rows])
    for (matrix, bias), (letter, small_letter) in zip((inner, outer), ("Aa", "Wb")):
        np.testing.assert_array_equal(getattr(one, letter), matrix)
        np.testing.assert_array_equal(getattr(one, small_letter), bias)
    np.testing.assert_array_equal(one.o, out[1])
    assert one.scale == pytest.approx(3**-0.5) and not one.pre and not one.causal
    assert one.first.gain.tolist() == [0, 1, 2, 3, 4] and one.second.gain.tolist() == [1] * 5
    assert (one.first.epsilon, one.second.epsilon) == (0.1, 0.2)
    assert one.second.shift.tolist() == [0, 1, 2, 3, 4] and one.activation == "relu"
    other = _matrices.block(parts, heads, "relu", scale=0.25, pre=True, causal=True)
    assert other.scale == 0.25 and other.pre and other.causal


def linear(random, rows, columns, bias=True):
    weight = torch.from_numpy(random.normal(size=(rows, columns)))
    return SimpleNamespace(
        weight=weight, bias=torch.from_numpy(random.normal(size=rows)) if bias else None
    )


@pytest.mark.parametrize("bias", [False, True])
def test_keys_and_values_are_shared_by_groups_of_heads(bias):
    random, heads, groups, m, d = np.random.default_rng(0), 6, 2, 3, 5
    attention = SimpleNamespace(
        q_proj=linear(random, heads * m, d, bias),
        k_proj=linear(random, groups * m, d, bias),
        v_proj=linear(random, groups * m, d, bias),
        o_proj=linear(random, d, heads * m, bias),
    )
    found = llama._heads(attention, heads, groups)
    for h in range(heads):
        own, shared = slice(h * m, (h + 1) * m), slice(h // 3 * m, (h // 3 + 1) * m)
        for letter, part, rows in (
            ("Q", attention.q_proj, own),
            ("K", attention.k_proj, shared),
            ("V", attention.v_proj, shared),
        ):
            np.testing.assert_array_equal(getattr(found, letter)[h], part.weight[rows])
            if bias:
                np.testing.assert_array_equal(getattr(found, letter.lower())[h], part.bias[rows])
        np.testing.assert_array_equal(found.O[h], attention.o_proj.weight[:, own])
    if bias:
        np.testing.assert_array_equal(found.o, attention.o_proj.bias)
    else:
        assert found.q is None and found.o is None


def test_a_window_is_that_of_the_layer_and_of_mistral_that_of_the_config():
    def mask(kind, own, whole):
        config = SimpleNamespace(model_type=kind, sliding_window=whole)
        return llama._mask(SimpleNamespace(config=config, sliding_window=own))

    assert mask("qwen2", None, 7) == CausalMask() and mask("qwen2", 4, 7) == WindowMask(width=4)
    assert mask("mistral", 4, None) == CausalMask()
    assert mask("mistral", None, 7) == WindowMask(width=7)


def test_gemma_keeps_its_gain_less_one():
    part = SimpleNamespace(weight=torch.arange(3.0), eps=0.1, variance_epsilon=0.2)
    for kind, gain, epsilon in (("gemma", [1, 2, 3], 0.1), ("llama", [0, 1, 2], 0.2)):
        norm = llama._norm(part, kind)
        assert np.asarray(norm.gain).tolist() == gain and norm.epsilon == epsilon
        assert not norm.centred and norm.shift is None


def llama_of(**changes):
    config = transformers.LlamaConfig(**SMALL | {"num_key_value_heads": 1} | changes)
    return transformers.AutoModel.from_config(config)


def test_what_a_llama_must_be_to_be_a_block():
    model = llama_of(attention_bias=True, hidden_act="gelu_pytorch_tanh")
    block = Block.from_model(model)
    layer = model.layers[0]
    np.testing.assert_array_equal(block.feed_forward.W, layer.mlp.down_proj.weight.detach())
    np.testing.assert_array_equal(block.feed_forward.A, layer.mlp.up_proj.weight.detach())
    np.testing.assert_array_equal(block.feed_forward.G, layer.mlp.gate_proj.weight.detach())
    assert block.feed_forward.activation == Activation.GELU and block.beta == pytest.approx(8**-0.5)
    assert block.positions.base == 10000.0 and block.heads.o is not None
    with torch.no_grad():
        layer.post_attention_layernorm.weight.fill_(2.0)
    norm = Block.from_model(model).norm
    assert norm.first.gain.tolist() == [1] * 16 and norm.second.gain.tolist() == [2] * 16
    stretched = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    for changes, said in (
        ({"mlp_bias": True}, "gates without biases"),
        ({"hidden_act": "mish"}, "with an activation of"),
        ({"rope_parameters": stretched}, "plain rotary positions"),
    ):
        with pytest.raises(UserError, match=said):
            Block.from_model(llama_of(**changes))


def test_a_decoder_of_bert_is_causal():
    config = transformers.BertConfig(**SMALL, is_decoder=True)
    assert extract(load(transformers.BertModel(config)))[0].causal
    assert not extract(load(small("bert")))[0].causal


def test_texts_of_one_batch_are_run_together(monkeypatch):
    sizes = []
    whole = HuggingFaceModel.record

    def record(self, prompts, size, recording):
        sizes.append(len(prompts))
        return whole(self, prompts, size, recording)

    monkeypatch.setattr(HuggingFaceModel, "record", record)
    probe(small("bert"), ids(4, 5, 6, 4, 5, 6))
    assert sizes == [4, 2]


def test_the_facts_of_a_model():
    model = small("bert")
    facts = load(model).facts
    assert (facts.name, facts.source, facts.revision) == ("BertModel", None, "")
    assert (facts.architecture, facts.width, facts.heads) == ("bert", 16, 2)
    assert (facts.depth, facts.own_depth, facts.room, facts.dtype) == (3, 3, 512, "float32")
    model.name_or_path, model.config._commit_hash = "hub/some-bert", "abc"
    facts = load(model, Variant(heads=4)).facts
    assert (facts.name, facts.source) == ("some-bert (4 heads)", "hub/some-bert")
    assert (facts.heads, facts.revision, facts.variant) == (4, "abc", Variant(heads=4))
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3}
    endless = SimpleNamespace(config=SimpleNamespace(model_type="x", **sizes), dtype="torch.half")
    facts = huggingface._facts(endless, "endless", None, 5)
    assert (facts.room, facts.dtype, facts.depth, facts.own_depth) == (10**9, "half", 5, 3)
    deep = load(small("albert"), Variant(depth=7)).facts
    assert (deep.depth, deep.own_depth) == (7, 3)


def test_a_folder_is_loaded_in_single_precision_unless_said(tmp_path):
    small("albert").to(torch.bfloat16).save_pretrained(tmp_path / "little")
    facts = load(tmp_path / "little").facts
    assert (facts.name, facts.dtype) == ("little", "float32")
    assert facts.source == str(tmp_path / "little")
    assert load(tmp_path / "little", Variant(dtype="float64")).facts.dtype == "float64"
    fresh = load(tmp_path / "little", Variant(untrained=True, seed=5))
    assert fresh.facts.name == "little (untrained, seed 5)" and fresh.facts.dtype == "float32"
    assert fresh.digest() == load(tmp_path / "little", Variant(untrained=True, seed=5)).digest()
    assert fresh.digest() != load(tmp_path / "little", Variant(untrained=True)).digest()


def test_the_digest_is_that_of_all_weights_by_name():
    model = small("gpt2")
    total = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        total.update(name.encode() + tensor.numpy().tobytes())
    assert load(model).digest() == total.hexdigest()


def test_heads_divide_the_width():
    model = small("bert")
    assert _with_heads(model, None) is model and _with_heads(model, 2) is model
    for heads in (1, 16):
        cut = _with_heads(model, heads)
        assert cut.config.num_attention_heads == heads and model.config.num_attention_heads == 2
        assert torch.equal(next(cut.parameters()), next(model.parameters()))
    for heads in (0, 3, -2):
        with pytest.raises(UserError, match="heads must be a divisor of the width 16"):
            _with_heads(model, heads)


def test_a_model_without_a_pooler_is_cut_too():
    """The part of a larger model, with parts of its own left out."""
    whole = transformers.BertForMaskedLM(transformers.BertConfig(**SMALL)).eval()
    assert whole.base_model.pooler is None
    assert probe(whole, ids(4), variant=Variant(heads=1)).attrs["model"].endswith("(1 head)")

"""A model's folder that somebody sent: what would hang or fill the memory is told in one line."""

from __future__ import annotations

import base64
import json
import os
from types import SimpleNamespace

import pytest

from tests.probing.conftest import ids, small, torch, transformers
from tokenflock.errors import UserError
from tokenflock.probing import Text, Variant, huggingface, load, probe, sizes, weights
from tokenflock.probing.folders import check, weight_bytes
from tokenflock.probing.tokenizer_file import harmless


@pytest.fixture
def folder(tmp_path):
    """A small ALBERT on disk, without a tokenizer."""
    small("albert").save_pretrained(tmp_path / "albert")
    return tmp_path / "albert"


def changed(folder, name="config.json", **values):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def complaint(*args, **options):
    with pytest.raises(UserError) as caught:
        probe(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "sub/a.jinja"])
def test_a_pipe_or_a_device_is_told_before_it_is_opened(folder, name):
    check(folder)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert f"{path} is a pipe or a device" in complaint(folder, ids(5))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert f"{path} is a pipe or a device" in complaint(folder, ids(5))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", -1),
        ("num_hidden_groups", 1001),
        ("inner_group_num", 10**6),
        ("vocab_size", 5 * 10**7),
        ("hidden_size", 10**9),
        ("embedding_size", 10**9),
        ("max_position_embeddings", 10**9),
        ("num_attention_heads", 10**9),
    ],
)
def test_a_size_that_its_weights_cannot_have_is_told_by_its_key(folder, monkeypatch, key, value):
    changed(folder, **{key: value})
    monkeypatch.setattr(weights, "fetched", lambda *_: pytest.fail("the config was loaded"))
    said = complaint(folder, ids(5))
    assert f"{key} in {folder / 'config.json'} must be" in said and f"got {value}" in said


def test_a_size_inside_a_config_of_a_part_is_looked_at_too(folder):
    changed(folder, text_config={"parts": {"n_layer": 10**9}})
    assert "n_layer in" in complaint(folder, ids(5))


def test_sizes_at_their_bounds_are_taken(folder):
    changed(folder, num_hidden_layers=1000, max_position_embeddings=2**24, rope_theta=1e12)
    sizes.plain_sizes(folder)
    changed(folder, max_position_embeddings=2**24 + 1)
    with pytest.raises(UserError, match="max_position_embeddings"):
        sizes.plain_sizes(folder)


def test_a_config_that_is_no_object_is_told(folder):
    for written in ("[1]", "{", "[" * 100_000):
        (folder / "config.json").write_text(written)
        with pytest.raises(UserError, match=r"config\.json"):
            sizes.plain_sizes(folder)


def test_sizes_that_make_a_large_model_together_are_told_before_it_is_made(folder, monkeypatch):
    """Each of them is small; 16,000,000 rows of 8 numbers are not."""
    changed(folder, vocab_size=16_000_000)
    monkeypatch.setattr(
        transformers.AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("it was made")
    )
    said = complaint(folder, ids(5))
    assert "larger model than its weights are" in said and "mend vocab_size" in said
    changed(folder, vocab_size=40, num_hidden_groups=900, intermediate_size=5000)
    said = complaint(folder, ids(5))
    assert "larger model than its weights are" in said and "mend num_hidden_groups" in said


def test_how_large_a_model_is_is_known_before_it_is_there(folder):
    network = small("albert")
    config = network.config
    config.vocab_size = 10**9  # none of it is made
    extra = (10**9 - 40) * 8
    tables = sum(part.numel() for part in network.buffers())
    held = sum(part.numel() for part in network.parameters())
    assert sizes.numbers(config) == held + tables + extra
    assert weight_bytes(folder) == (folder / "model.safetensors").stat().st_size > 4 * held
    assert sizes.numbers(SimpleNamespace()) == 0  # transformers itself will say why


def test_fresh_weights_that_do_not_fit_are_told(folder, monkeypatch):
    monkeypatch.setattr("tokenflock.engines.memory.free", lambda: 1000.0)
    monkeypatch.setattr("tokenflock.engines.memory.LITTLE", 0.0)
    assert "with fresh weights needs" in complaint(folder, ids(5), variant=Variant(untrained=True))


@pytest.mark.parametrize("wrong", [-1, 0, True, "3", 2.5])
def test_a_model_has_a_number_of_layers(wrong):
    config = SimpleNamespace(model_type="x", num_hidden_layers=wrong, hidden_size=8)
    with pytest.raises(UserError, match="num_hidden_layers of the model must be"):
        huggingface._check_kind(config)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("untrained", [False, True])
def test_attention_is_that_of_transformers_whatever_the_file_says(
    folder, monkeypatch, key, untrained
):
    """Another name may be code to fetch."""
    asked = []
    kind = transformers.modeling_utils.PreTrainedModel
    before = kind._check_and_adjust_attn_implementation

    def noted(self, name, *args, **options):
        asked.append(name)
        return before(self, name, *args, **options)

    monkeypatch.setattr(kind, "_check_and_adjust_attn_implementation", noted)
    wanted = load(folder, Variant(untrained=untrained)).network.config._attn_implementation
    changed(folder, **{key: "kernels-community/evil", "experts_implementation": "evil/evil"})
    found = load(folder, Variant(untrained=untrained))
    assert found.network.config._attn_implementation == wanted in ("sdpa", "eager")
    assert "kernels-community/evil" not in asked


def test_a_pickle_is_refused_in_silence(folder, recwarn):
    (folder / "model.safetensors").unlink()
    torch.save({"x": torch.zeros(1)}, folder / "pytorch_model.bin", pickle_protocol=4)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")
    complaint(folder, ids(5))
    assert not [str(warning.message) for warning in recwarn]


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


TEXT = {"Sequence": {"id": "A", "type_id": 0}}
SPECIAL = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}


def template(pieces, ids=1):
    """A post-processor that adds so many ids for each special piece."""
    token = {"id": "[CLS]", "ids": [37] * ids, "tokens": ["[CLS]"] * ids}
    kinds = {"single": pieces, "pair": [TEXT, {"Sequence": {"id": "B", "type_id": 1}}]}
    return {"type": "TemplateProcessing", "special_tokens": {"[CLS]": token}, **kinds}


LONGER, LEVEL = replace({"String": "\n"}, "\n\n"), {"type": "ByteLevel"}
SPACE, BLANK = replace({"String": " "}, "\u2581"), replace({"Regex": " {2,}"}, " ")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"normalizer": LONGER}, "a Replace of {'String': "),
        ({"normalizer": sequence(*[LONGER] * 40)}, "normalizer in"),
        ({"normalizer": sequence(sequence(LONGER))}, "a Replace of"),
        ({"normalizer": replace({"String": ""}, "a")}, "a Replace of"),
        ({"normalizer": replace({"Regex": "x?"}, "ab")}, "a Replace of"),
        ({"normalizer": sequence(*[replace({"Regex": "x?"}, "a")] * 9)}, "8 replaced patterns"),
        ({"normalizer": sequence(*[{"type": "Lowercase"}] * 33)}, "at most 32 parts"),
        ({"normalizer": sequence(LEVEL, LEVEL)}, "of one ByteLevel"),
        ({"normalizer": sequence(*[{"type": "Precompiled"}] * 2)}, "of one Precompiled"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [LEVEL] * 2}}, "pre_tokenizer"),
        (
            {"normalizer": {"type": "Prepend", "prepend": "x" * 65}},
            "prepends at most 64 characters",
        ),
        ({"post_processor": template([TEXT] * 2)}, "a template with one text"),
        ({"post_processor": template([SPECIAL] * 1001)}, "to add at most 1,000 tokens"),
        ({"post_processor": template([SPECIAL], 1001)}, "to add at most 1,000 tokens"),
        (
            {"post_processor": {"type": "Sequence", "processors": [template([TEXT] * 2)]}},
            "a template with one text",
        ),
        ({"padding": {"strategy": {"Fixed": 2 * 10**9}}}, "to at most 1,048,576 tokens"),
        ({"padding": {"pad_to_multiple_of": 2 * 10**9}}, "to at most 1,048,576 tokens"),
        ([], "must be an object"),
    ],
)
def test_a_tokenizer_that_lengthens_a_text_without_need_is_told(folder, told, said):
    (folder / "tokenizer.json").write_text(json.dumps(told))
    complained = complaint(folder, "A text.")
    assert said in complained and "tokenizer.json" in complained


@pytest.mark.parametrize(
    "told",
    [
        {"normalizer": None, "pre_tokenizer": None, "padding": None},
        {"normalizer": sequence(SPACE, BLANK, {"type": "NFKD"}, {"type": "Precompiled"}, BLANK)},
        {"normalizer": LEVEL, "pre_tokenizer": LEVEL},
        {"padding": {"strategy": {"Fixed": 128}, "pad_to_multiple_of": None}},
        {"padding": {"strategy": "BatchLongest"}},
        {"post_processor": template([SPECIAL, TEXT, SPECIAL])},
        {"post_processor": template([SPECIAL, TEXT], 1000)},
    ],
)
def test_tokenizers_such_as_there_are_are_taken(tmp_path, told):
    (tmp_path / "tokenizer.json").write_text(json.dumps(told))
    harmless(tmp_path / "tokenizer.json")


VOCAB = {word: k for k, word in enumerate(["[UNK]", "[CLS]", "a", *"bcdefghijklmnopqrstu"])}
WORDS = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "[UNK]"},
}
CHARMAP = base64.b64encode((400).to_bytes(4, "little") + b"\xff" * 400 + b"abc\0").decode()


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"pre_tokenizer": split("(x+x+)+y")}, "cannot encode"),
        ({"pre_tokenizer": split("(")}, "has no tokenizer"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": CHARMAP}}, "cannot encode"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "cannot encode"),
        ({"model": WORDS["model"] | {"unk_token": "none"}}, "cannot encode"),
        ({"model": WORDS["model"] | {"vocab": VOCAB | {"a": 10**9}}}, "ids of the tokenizer of"),
        ({"post_processor": template([SPECIAL] * 900)}, "one that cuts a text at"),
    ],
)
def test_a_tokenizer_that_fails_is_told(folder, told, said):
    """Also where the library below panics, which is no Exception."""
    (folder / "tokenizer.json").write_text(json.dumps(WORDS | told))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    complained = complaint(folder, "a b " + "x" * 40)
    assert said in complained and str(folder.name) in complained


def test_a_tokenizer_without_faults_is_taken(folder):
    (folder / "tokenizer.json").write_text(json.dumps(WORDS))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert probe(folder, "a b c").word.values.tolist() == [["a", "b", "c"]]


def test_no_file_outside_of_the_folder_is_read(folder, tmp_path):
    """Neither by a link nor by a name, and no base model of an adapter."""
    (tmp_path / "secret.json").write_text(json.dumps(WORDS))
    names = {"weight_map": {"a": "../secret.safetensors"}}
    for name, text, said in (
        ("model.safetensors.index.json", json.dumps(names), "weight_map in"),
        ("tokenizer_config.json", '{"fast_tokenizer_files": ["../tokenizer.1.json"]}', "beside it"),
        ("adapter_config.json", '{"base_model_name_or_path": "../other"}', "merge the adapter"),
    ):
        (folder / name).write_text(text)
        assert said in complaint(folder, ids(5))
        (folder / name).unlink()
    (folder / "tokenizer.json").symlink_to(tmp_path / "secret.json")
    assert "is a link to" in complaint(folder, ids(5))


def test_the_cache_of_the_hub_keeps_files_behind_links(folder, tmp_path):
    here, blobs = tmp_path / "models--x" / "snapshots" / "0", tmp_path / "models--x" / "blobs"
    here.parent.mkdir(parents=True)
    folder.rename(here)
    blobs.mkdir()
    for k, path in enumerate(here.iterdir()):
        path.rename(blobs / str(k))
        path.symlink_to(f"../../blobs/{k}")
    assert probe(here, ids(5)).sizes["layer"] > 1


@pytest.mark.parametrize("name", ["vocab.json", "vocab.txt", "tokenizer.json", "special.json"])
def test_a_list_that_fills_the_memory_is_not_read(folder, monkeypatch, name):
    """Three bytes of a list become an object of a hundred bytes."""
    monkeypatch.setattr("tokenflock.files.ALLOWED", 1e6)
    text = "a\n" * 20_000 if name.endswith("txt") else "[" + "[]," * 20_000 + "[]]"
    (folder / name).write_text(text)
    said = complaint(folder, ids(5))
    assert f"{name} has" in said and "of memory once it is read" in said


def test_the_tokenizer_of_a_real_model_is_taken(minilm):
    assert load(minilm).tokenizer("A text.")["input_ids"]


def test_a_text_that_netcdf_cannot_hold_is_marked_before_anything_is_lost(folder, tmp_path):
    texts = [Text("a\0b\ud800", ids(5)[0].ids)]
    found = probe(folder, texts, out=tmp_path / "probe.nc")
    assert found.text.values.tolist() == ["a\ufffdb?"]


def test_weights_that_no_file_has_are_the_same_in_each_run(folder):
    """Those of a pooler, on which no hidden state depends: else each run had another digest."""
    network = small("albert")
    kept = {name: part for name, part in network.state_dict().items() if "pooler" not in name}
    network.save_pretrained(folder, state_dict=kept)
    first, second = load(folder), load(folder)
    assert first.digest() == second.digest()
    assert not first.network.pooler.weight.any() and first.network.embeddings.LayerNorm.weight.any()

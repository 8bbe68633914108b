"""What goes wrong is told in one line with the remedy, and no model is ever replaced by another."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace

import pytest

from tests.probing.conftest import ids, small, torch
from tokenflock.errors import SimulationError, UserError
from tokenflock.gpt.text import Characters
from tokenflock.probing import (
    Recording,
    Selection,
    Variant,
    cached,
    choose,
    fetching,
    huggingface,
    load,
    probe,
    texts,
)
from tokenflock.probing.own_gpt import OwnGPT


@pytest.fixture
def folder(tmp_path):
    """A small ALBERT on disk, without a tokenizer."""
    small("albert").save_pretrained(tmp_path / "albert")
    return tmp_path / "albert"


def complaint(*args, **options):
    with pytest.raises(UserError) as caught:
        probe(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_model_that_is_not_here():
    said = complaint("albert/no-such-model", "text")
    assert "hf download albert/no-such-model" in said and "no network" in said
    assert not cached("albert/no-such-model")


def test_no_such_folder(tmp_path):
    assert "there is no folder" in complaint(str(tmp_path / "none"), "text")
    assert "no config.json" in complaint(tmp_path, "text")


def test_a_folder_without_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "no weights" in complaint(folder, ids(5))
    assert probe(folder, ids(5), variant=Variant(untrained=True)).sizes["layer"] == 4


def test_weights_that_do_not_fit_are_not_filled_in(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 32}))
    assert complaint(folder, ids(5))
    small("bert").save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    assert "nothing is filled in" in complaint(folder, ids(5))


def test_an_unknown_architecture(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "quantum-hopfield"}))
    assert "does not know" in complaint(folder, ids(5))


def test_a_pickle_that_would_run_code_is_refused(folder, tmp_path):
    class Attack:
        def __reduce__(self):
            return open, (str(tmp_path / "owned"), "w")

    (folder / "model.safetensors").unlink()
    with open(folder / "pytorch_model.bin", "wb") as file:
        pickle.dump({"weight": Attack()}, file)
    complaint(folder, ids(5))
    torch.save({"weight": Attack()}, folder / "pytorch_model.bin")
    assert "pickle that would run code" in complaint(folder, ids(5))
    assert not (tmp_path / "owned").exists()


def test_a_folder_without_a_tokenizer_needs_ids(folder):
    assert "no tokenizer of its own" in complaint(folder, "A text.")
    assert "without a tokenizer" in complaint(small("bert"), "A text.")
    assert "0 to 39" in complaint(folder, [texts.Text("", (1, 99))])


def test_too_few_tokens(folder, minilm):
    assert "too few tokens: 1" in complaint(folder, ids(1))
    assert "too few tokens: 1" in complaint(minilm, "One", tokens=Selection(special=False))


def test_only_shared_layers_run_past_their_depth():
    assert "weights of their own" in complaint(small("bert"), ids(5), depth=12)
    assert probe(small("bert"), ids(5), depth=3).sizes["layer"] == 4


def test_options_that_cannot_be():
    model = small("albert")
    assert "divisor of the width 16" in complaint(model, ids(5), variant=Variant(heads=3))
    assert "no plain cut" in complaint(small("llama"), ids(5), variant=Variant(heads=1))
    assert "layers must be from 0 to 3" in complaint(model, ids(5), record=Recording(layers=[7]))
    assert "length must be" in complaint(model, ids(5), tokens=Selection(length=10**6))
    assert "dtype must be" in complaint(model, ids(5), variant=Variant(dtype="int8"))
    assert "model must be" in complaint(17, ids(5))
    assert "device" in complaint(model, ids(5), variant=Variant(device="abacus"))


def test_an_encoder_with_a_decoder(tmp_path):
    t5 = {
        "model_type": "t5",
        "d_model": 8,
        "num_layers": 1,
        "num_heads": 1,
        "d_kv": 8,
        "d_ff": 8,
        "vocab_size": 40,
    }
    (tmp_path / "config.json").write_text(json.dumps(t5))
    assert "two streams" in complaint(tmp_path, ids(5), variant=Variant(untrained=True))


def test_numbers_that_overflow_are_not_returned():
    model = small("gpt2")
    with torch.no_grad():
        model.h[0].mlp.c_proj.weight.mul_(torch.inf)
    with pytest.raises(SimulationError, match="left the numbers"):
        probe(model, ids(5))


def test_files_of_texts(tmp_path):
    plain = tmp_path / "a.txt"
    plain.write_text("One.\n\nTwo.\n \nThree.")
    assert [one.text for one in texts.from_file(plain)] == ["One.", "Two.", "Three."]
    (tmp_path / "b.csv").write_text('text\n""\n" One, ""two"" . \n"\n')
    assert [one.text for one in texts.from_file(tmp_path / "b.csv")] == ['One, "two" .']
    (tmp_path / "prompts.json").write_text(
        json.dumps([{"text": "x", "ids": [1, 2], "special": [0]}, "plain"])
    )
    assert texts.beside(tmp_path) == [texts.Text("x", (1, 2), (0,)), texts.Text("plain")]
    for wrong in ('{"a": 1}', "[]", '[{"ids": ["a"]}]', "[1]", "no"):
        (tmp_path / "c.json").write_text(wrong)
        with pytest.raises(UserError, match=r"c\.json"):
            texts.from_file(tmp_path / "c.json")
    with pytest.raises(UserError, match=r"none\.txt"):
        texts.from_file(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(UserError, match="no text"):
        texts.from_file(tmp_path / "empty.txt")


def test_prompts_are_chosen_by_length_and_seed(folder):
    loaded, many = load(folder), ids(5, 20, 30, 8, 40, 25)
    lengths = [len(one.ids) for one in choose(loaded, many, 2, minimum=10, seed=1)]
    assert (
        lengths == [len(one.ids) for one in choose(loaded, many, 2, minimum=10, seed=1)]
        and min(lengths) > 10
    )
    assert [len(one.ids) for one in choose(loaded, many, minimum=10)] == [20, 30, 40, 25]
    with pytest.raises(UserError, match="the longest has 40"):
        choose(loaded, many, minimum=100)


def test_long_lines_are_paragraphs_of_their_own():
    long = "word " * 200
    assert [one.text for one in texts.paragraphs(f"{long}\nshort\n\nlast")] == [
        long.strip(),
        "short",
        "last",
    ]


def test_a_model_of_ours_refuses_tokens_that_it_does_not_know():
    alphabet = Characters("abc")
    model = OwnGPT(None, SimpleNamespace(alphabet=alphabet), None)
    assert list(model.encode(texts.Text("", (0, 2)), 8).ids) == [0, 2]
    for wrong in ((), (-1, 0), (0, alphabet.size)):
        with pytest.raises(UserError, match="tokens from 0 to 2"):
            model.encode(texts.Text("", wrong), 8)


def test_the_hub_is_asked_where_the_user_says_it_is(monkeypatch):
    asked = []
    monkeypatch.setattr(
        fetching.socket, "create_connection", lambda place, timeout: asked.append(place) or Closed()
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example:8080")
    assert fetching._online()
    monkeypatch.delenv("HF_ENDPOINT")
    assert fetching._online()
    assert asked == [("mirror.example", 8080), ("huggingface.co", 443)]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not fetching._online()


def test_a_hub_that_nobody_answers_for_is_not_asked(monkeypatch):
    def silent(place, timeout):
        raise TimeoutError

    monkeypatch.setattr(fetching.socket, "create_connection", silent)
    for name in ("HF_HUB_OFFLINE", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert not fetching._online()


class Closed:
    """A connection that nobody uses."""

    def close(self):
        pass


def test_more_than_the_memory_holds_is_refused_before_the_model_runs(monkeypatch, tmp_path):
    """2 prompts, 4 layers, 9 tokens, width 16, 4 bytes each: 2,304 bytes for each prompt."""
    monkeypatch.setattr("tokenflock.engines.memory.free", lambda: 3000.0)
    monkeypatch.setattr("tokenflock.engines.memory.LITTLE", 0.0)
    model, prompts = small("gpt2"), ids(5, 9)
    assert "needs 4.61 kB of memory" in complaint(model, prompts, batch=2)
    assert "out='probe.nc'" in complaint(model, prompts, batch=1)
    matrices = complaint(model, prompts[1:], record=Recording(attention=True))
    assert "batch=1" in matrices  # 2 heads, 81 numbers, 3 layers, kept in 4
    assert probe(model, prompts, batch=1, out=tmp_path / "probe.nc").sizes["prompt"] == 2


@pytest.mark.parametrize("missing", ["num_hidden_layers", "hidden_size"])
def test_a_model_without_layers_or_width_is_none_of_tokens(missing):
    config = SimpleNamespace(model_type="x", num_hidden_layers=2, hidden_size=8)
    huggingface._check_kind(config)
    delattr(config, missing)
    with pytest.raises(UserError, match="not a Transformer on tokens"):
        huggingface._check_kind(config)

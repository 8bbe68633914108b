"""Text as numbers: characters, byte pairs, what is held out, and the passages that are watched."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tokenflock.errors import UserError
from tokenflock.gpt import text
from tokenflock.gpt.text import (
    BytePairs,
    Characters,
    from_json,
    passages,
    read,
    save_passages,
    split,
)
from tokenflock.probing.texts import beside, built_in

TEXT = "the cat sat on the mat.\nthe rat ate the cat and sat on the mat.\n" * 4


def test_characters_are_numbered_by_the_alphabet():
    letters = Characters.of("banana")
    assert (letters.letters, letters.size) == ("abn", 3)
    ids = letters.encode("nab")
    assert ids.tolist() == [2, 0, 1] and ids.dtype == np.int32
    assert letters.decode(ids) == "nab" and letters.words(ids) == ["n", "a", "b"]
    with pytest.raises(UserError, match="knows no 'q': its 3 characters are 'abn'"):
        letters.encode("baq")
    again = from_json(letters.as_json())
    assert again == letters and isinstance(again, Characters)


def test_byte_pairs_join_what_stands_together_often():
    pytest.importorskip("tokenizers")
    pairs = BytePairs.of(TEXT, 270)
    assert 257 < pairs.size <= 270
    ids = pairs.encode(TEXT)
    assert ids.dtype == np.int32 and len(ids) < 0.7 * len(TEXT)
    assert pairs.decode(ids) == TEXT
    assert pairs.decode(pairs.encode("quäck!\n")) == "quäck!\n"
    words = pairs.words(pairs.encode("the cat"))
    assert "".join(words) == "the\u0120cat" and len(words) < 7  # a space, as the library writes it
    again = from_json(json.loads(json.dumps(pairs.as_json())))
    assert again == pairs  # so that an interrupted training goes on
    assert isinstance(again, BytePairs) and again.encode(TEXT).tolist() == ids.tolist()


def test_byte_pairs_are_as_many_as_asked_for_and_know_the_ends_of_lines():
    pytest.importorskip("tokenizers")
    assert BytePairs.of("abab", 257).size == 257
    with pytest.raises(UserError, match="byte_pairs must be 257 or more"):
        BytePairs.of("abab", 256)
    lines = BytePairs.of("a  \n" * 50, 258)  # two spaces, and then these with the end of the line
    assert lines.words(lines.encode("a  \n")) == ["a", "\u0120\u0120\u010a"]


def test_byte_pairs_are_learned_line_by_line_and_in_silence(monkeypatch):
    asked = {}

    class Tokenizer:
        def train_from_iterator(self, lines, **options):
            asked.update(options, lines=list(lines))

        def to_str(self):
            return "{}"

    monkeypatch.setattr(
        text, "_tokenizers", lambda: SimpleNamespace(ByteLevelBPETokenizer=Tokenizer)
    )
    assert BytePairs.of("one\ntwo\n", 300) == BytePairs("{}")
    assert asked == {"lines": ["one\n", "two\n"], "vocab_size": 300, "show_progress": False}


def test_a_text_is_read_from_its_file_or_is_the_manual(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("täglich\n", encoding="utf-8")
    assert read(path) == "täglich\n"
    topics = [topic.text for topic in built_in()]
    assert read().startswith(topics[0] + "\n\n" + topics[1])
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"a\.txt is not a text file .*\(not UTF-8\)"):
        read(path)
    with pytest.raises(UserError, match=r"\(No such file or directory\)"):
        read(tmp_path / "none.txt")


def test_the_last_tenth_is_held_out_and_holds_at_least_one_window():
    train, valid = split(np.arange(200), 9)
    assert train.tolist() == list(range(180)) and valid.tolist() == list(range(180, 200))
    train, valid = split(np.arange(200), 19)  # twenty tokens: a window of 19 and what follows it
    assert len(valid) == 20
    with pytest.raises(UserError, match=r"has 200 tokens, .* context of 20: .* bring 220 or more"):
        split(np.arange(200), 20)
    assert len(split(np.arange(220), 20)[1]) >= 21


def test_passages_are_windows_from_the_first_token_to_the_last_evenly_spread():
    ids = np.arange(100, 130)
    found = passages(ids, 9)
    begins = [0, 3, 6, 9, 12, 15, 18, 21]  # 21 + 9 is the end
    assert found.tolist() == [list(range(100 + k, 109 + k)) for k in begins]
    assert passages(ids, 9, 3).tolist() == [list(range(k, k + 9)) for k in (100, 110, 121)]
    assert passages(ids[:9], 9).tolist() == [list(range(100, 109))]  # there is but one
    assert len(passages(ids[:11], 9)) == 3


def test_passages_lie_beside_a_model_where_probe_finds_them(tmp_path):
    letters = Characters.of("flock")  # c f k l o
    save_passages(tmp_path, letters, np.array([[1, 3, 4], [0, 0, 2]]))
    written = (tmp_path / "prompts.json").read_text(encoding="utf-8")
    assert json.loads(written) == [
        {"text": "flo", "ids": [1, 3, 4]},
        {"text": "cck", "ids": [0, 0, 2]},
    ]
    assert written.endswith("]\n")
    assert [one.text for one in beside(tmp_path)] == ["flo", "cck"]


DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}


def model(**changes):
    return {"model": BytePairs.of("abab", 257).as_json()["byte_pairs"]["model"] | changes}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: {"normalizer": {"type": "Sequence", "normalizers": [DOUBLES] * 40}}, "normalizer"),
        (lambda: {"padding": {"strategy": {"Fixed": 2 * 10**9}}}, "padding"),
        (lambda: {"truncation": {"max_length": 5}}, "truncation"),
        (lambda: {"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer must be ByteLevel"),
        (lambda: {"decoder": {"type": "Replace"}}, "decoder must be ByteLevel"),
        (lambda: {"post_processor": None}, "post_processor must be ByteLevel"),
        (lambda: {"added_tokens": [{"id": 0, "content": "a"}]}, "added_tokens"),
        (lambda: {"surprise": 1}, "got also surprise"),
        (lambda: model(type="WordLevel"), "model.type must be BPE"),
        (lambda: model(dropout=0.5), "model.dropout"),
        (lambda: model(vocab={"a": 4 * 10**9}), "model.vocab must be tokens numbered from 0"),
        (lambda: model(vocab={"a": True, "b": 0}), "model.vocab must be tokens numbered from 0"),
        (lambda: model(vocab={"a" * 70_000: 0}), "at most 65,536 characters"),
        (lambda: model(merges=5), "model.merges must be a list"),
    ],
)
def test_only_byte_pairs_such_as_training_writes_are_obeyed(change, said):
    pytest.importorskip("tokenizers")
    told = BytePairs.of("abab", 257).as_json()["byte_pairs"]
    assert from_json({"byte_pairs": told}).size == 257
    with pytest.raises(UserError, match=said):
        from_json({"byte_pairs": told | change()})


def test_a_text_of_a_device_is_told(tmp_path):
    for path in ("/dev/zero", tmp_path):
        with pytest.raises(UserError, match="must be a file"):
            read(path)

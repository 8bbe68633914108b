"""Texts from wherever they come, and those that are chosen among them."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections import UserDict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tokenflock as flock
from tests.probing.made import Made, layer
from tokenflock.errors import UserError
from tokenflock.probing import Recording, Selection, Text, Variant, choose, texts
from tokenflock.probing.texts import as_texts, beside, from_file, paragraphs


def test_one_text_many_and_a_path_are_texts(tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("One.\n\nTwo.")
    assert as_texts("One.") == [Text("One.")] and as_texts(Text("x", (1,))) == [Text("x", (1,))]
    assert as_texts(path) == [Text("One."), Text("Two.")]
    assert as_texts(["a", Text("b")]) == [Text("a"), Text("b")]
    for wrong in ([], ["a", 3], [3]):
        with pytest.raises(UserError, match="a text, a Path, or a list of texts"):
            as_texts(wrong)


def test_paragraphs_end_at_blank_lines_and_long_lines_are_paragraphs():
    """A line of 300 characters was wrapped by hand, one of 301 was not."""
    wrapped, long = "w" * 300, "l" * 301
    assert paragraphs(f"{wrapped}\nnext") == [Text(f"{wrapped}\nnext")]
    assert paragraphs(f"{long}\nnext") == [Text(long), Text("next")]
    assert paragraphs(f"next\n{long}\n \t\n a \n") == [Text("next"), Text(long), Text("a")]
    assert paragraphs(" \n\n ") == []


NO_TEXTS = {
    "nothing": None,
    "an empty list": [],
    "a number": 3,
    "ids": [2, 7, 3],
    "nested ids": [[2, 7, 3]],
    "nested texts": [["One.", "Two."]],
    "a mapping of texts": {"a": "One.", "b": "Two."},
    "the output of a tokenizer": UserDict(input_ids=[[2, 7, 3]], attention_mask=[[1, 1, 1]]),
    "an array": np.array([[2, 7, 3]]),
    "bytes": b"One.",
    "a list of bytes": [b"One."],
    "paths": [Path("one.txt")],
    "an open file": io.StringIO("One.\nTwo."),
    "a set, which has no order": {"One.", "Two."},
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_what_is_no_text_is_refused_with_the_remedy(name):
    with pytest.raises(UserError, match="texts must be a text, a Path, or a list of texts") as told:
        flock.probe(Made([layer(1)]), NO_TEXTS[name])
    assert "pass a list of strings, and ready token ids as Text(" in str(told.value)
    assert type(NO_TEXTS[name]).__name__ in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(("name", "comma"), [("rows.CSV", ","), ("rows.tsv", "\t")])
def test_a_table_gives_its_column_text_even_over_lines(tmp_path, name, comma):
    path = tmp_path / name
    path.write_text(f'name{comma}text\n1{comma}"three\nfour"\n2\n3{comma}five\n')
    assert [one.text for one in from_file(path)] == ["three\nfour", "five"]


@pytest.mark.parametrize("header", ["one,two", "a text without a header", "text,text", ""])
def test_a_table_without_a_column_text_is_refused(tmp_path, header):
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n1,2\n")
    with pytest.raises(UserError, match="whose first line names a column 'text', got"):
        from_file(path)


@pytest.mark.parametrize("name", ["items.jsonl", "items.ndjson"])
def test_lines_of_json_are_items_each(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"text": "One.\u2028Still one.", "label": 3}\n\n"Two."\r\n{"ids": [4]}\n')
    assert from_file(path) == [Text("One.\u2028Still one."), Text("Two."), Text("", (4,))]
    for wrong, said in (("One.\nTwo.", "is not JSON"), ('{"body": "a"}', "of items")):
        path.write_text(wrong)
        with pytest.raises(UserError, match=said):
            from_file(path)


def test_a_file_of_items_gives_texts_and_ids(tmp_path):
    path = tmp_path / "items.JSON"

    def read(*items):
        path.write_text(json.dumps(items))
        return from_file(path)

    assert read("plain") == [Text("plain")]
    assert read({"ids": [4, 5]}, {"text": 7}) == [Text("", (4, 5)), Text("7")]
    assert read({"text": "x", "ids": [1], "special": [0]}) == [Text("x", (1,), (0,))]
    assert read({"text": "x", "ids": []}) == [Text("x", ())]
    for wrong in ({"ids": [1, "a"]}, {"ids": 3}, {"ids": 3, "text": "x"}, {"other": 1}, 5, None):
        with pytest.raises(UserError, match="a list of texts or of items"):
            read(wrong)
    with pytest.raises(UserError, match="a list of texts or of items"):
        read()
    path.write_text('{"text": "x"}')
    with pytest.raises(UserError, match="got dict"):
        from_file(path)


def test_what_cannot_be_read_is_told(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        from_file(tmp_path / "latin.txt")
    with pytest.raises(UserError, match="No such file"):
        from_file(tmp_path / "none.txt")
    (tmp_path / "empty.csv").write_text("text\n")
    with pytest.raises(UserError, match="holds no text"):
        from_file(tmp_path / "empty.csv")


def test_texts_beside_a_model_are_ids_before_tables_before_plain_ones(tmp_path):
    assert beside(tmp_path) is None
    for name, content, found in (
        ("prompts.txt", "plain", "plain"),
        ("prompts.csv", "text\na table", "a table"),
        ("prompts.json", '["items"]', "items"),
    ):
        (tmp_path / name).write_text(content)
        assert beside(tmp_path) == [Text(found)]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[" * 100_000 + "]" * 100_000, "is not JSON that can be read"),
        ('[{"ids": [1000000000000000000000000000000]}]', "ids in .* must be whole numbers from 0"),
        ('[{"ids": [true, false, true]}]', "ids in .* must be whole numbers from 0"),
        ('[{"ids": [-1]}]', "ids in .* must be whole numbers from 0"),
        ('[{"ids": 3}]', "ids in .* must be whole numbers from 0"),
        ('[{"text": "a", "special": 5}]', "special in .* must be whole numbers from 0"),
        ('[{"text": "a", "special": [0.5]}]', "special in .* must be whole numbers from 0"),
        (r'["\ud800"]', "text in .* must be one that UTF-8 can write"),
        (r'[{"ids": [1], "text": "a\udfff"}]', "text in .* must be one that UTF-8 can write"),
        ("[null]", "must be a list of texts"),
    ],
)
def test_items_that_cannot_be_are_told_before_anything_runs(tmp_path, written, said):
    path = tmp_path / "prompts.json"
    path.write_text(written)
    with pytest.raises(UserError, match=said) as told:
        beside(tmp_path)
    assert "\n" not in str(told.value) and len(str(told.value)) < 400


def test_texts_are_those_of_a_file_and_not_of_a_pipe_or_a_device(tmp_path):
    with pytest.raises(UserError, match="must be a file"):
        from_file("/dev/zero")
    (tmp_path / "prompts.txt").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="must be a file"):
        beside(tmp_path)


def test_a_pipe_is_read_where_it_is_named_and_not_where_it_lies_beside_a_model(tmp_path):
    """As in `--text <(command)`."""
    pipe = tmp_path / "prompts.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("One.\n\nTwo.\n",))
    writer.start()
    assert from_file(pipe) == [Text("One."), Text("Two.")]
    writer.join()
    with pytest.raises(UserError, match="must be a file"):
        beside(tmp_path)


def test_lines_may_end_as_they_do_elsewhere(tmp_path):
    path = tmp_path / "two.txt"
    path.write_bytes("One\r\nline.\r\n\r\nTw\u00f6.\r".encode())
    assert from_file(path) == [Text("One\nline."), Text("Tw\u00f6.")]


def test_a_table_with_an_endless_cell_is_told(tmp_path):
    (tmp_path / "a.csv").write_text('"' + "x" * 200_000)
    with pytest.raises(UserError, match="is no table that can be read"):
        from_file(tmp_path / "a.csv")


def test_standard_input_is_read_as_a_file_is(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("One.\n\nTwo.\n"))
    assert texts.from_stdin() == [Text("One."), Text("Two.")]
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    with pytest.raises(UserError, match="standard input holds no text"):
        texts.from_stdin()


def test_wikitext_is_that_of_the_hub_or_a_line_that_says_why_not(monkeypatch):
    asked = []

    def load_dataset(*names, split):
        asked.append((*names, split))
        return {"text": ["", " = Title = \n", "A paragraph.\n"]}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert texts.wikitext() == [Text("= Title ="), Text("A paragraph.")]
    texts.wikitext("validation")
    name = ("Salesforce/wikitext", "wikitext-103-v1")
    assert asked == [(*name, "test"), (*name, "validation")]

    def unreachable(*_, split):
        raise ConnectionError

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=unreachable))
    with pytest.raises(UserError, match=r"neither in the cache nor within reach \(ConnectionErr"):
        texts.wikitext()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match="pip install datasets"):
        texts.wikitext()


def test_some_texts_are_drawn_with_a_seed_and_keep_their_order():
    model, many = Made([layer()]), [Text("a" * n) for n in (3, 9, 4, 7, 5, 8, 6, 2)]
    drawn = [choose(model, many, 3, minimum=3, seed=seed) for seed in range(6)]
    assert len({tuple(one.text for one in part) for part in drawn}) > 1
    for seed, part in enumerate(drawn):
        assert part == [one for one in many if one in part] and len(part) == 3
        assert min(len(one.text) for one in part) > 3
        assert part == choose(model, many, 3, minimum=3, seed=seed)
    assert len(choose(model, many, 1)) == 1 and choose(model, many) == many
    assert choose(model, many, 99, minimum=7) == [many[1], many[5]]


def test_a_text_is_read_no_further_than_needed():
    """As many tokens as are run, or one more than the minimum."""
    model, asked = Made([layer()]), []
    encode = model.encode
    model.encode = lambda text, length: asked.append(length) or encode(text, length)
    choose(model, [Text("abcdef")], minimum=4, length=3)
    choose(model, [Text("abcdef")], minimum=2, length=9)
    assert asked == [5, 9]
    with pytest.raises(UserError, match="more than 6 tokens: the longest has 5"):
        choose(model, [Text("abcde"), Text("ab")], minimum=6, seed=0)
    for wrong, said in (({"count": 0}, "prompts must be 1"), ({"seed": -1}, "seed must be 0")):
        with pytest.raises(UserError, match=said):
            choose(model, [Text("abc")], **wrong)


def test_layers_are_counted_from_either_end():
    assert Recording().places(2) == (0, 1, 2)
    assert Recording(layers=[3, -4, 0, 1, -1]).places(3) == (0, 1, 3)
    assert Recording(layers=[-2]).places(3) == (2,)
    for wrong in ([], [4], [-5], [0, 4]):
        with pytest.raises(UserError, match="layers must be from 0 to 3"):
            Recording(layers=wrong).places(3)


def test_attention_is_looked_at_where_it_or_its_entropy_is_kept():
    assert not Recording().attends
    assert Recording(attention=True).attends and Recording(entropy=True).attends


def test_the_depth_of_a_variant_is_said_once():
    assert Variant(heads=2).of_depth(3) == Variant(depth=3, heads=2)
    assert Variant(depth=3).of_depth(None) == Variant(depth=3).of_depth(3) == Variant(depth=3)
    with pytest.raises(UserError, match="depth must be that of the variant, 3, got 4"):
        Variant(depth=3).of_depth(4)


def test_which_tokens_count():
    import numpy as np

    marks = np.array([True, False, True, False])
    for special, first, there in (
        (True, True, [1, 1, 1, 1]),
        (False, True, [0, 1, 0, 1]),
        (True, False, [0, 1, 1, 1]),
        (False, False, [0, 1, 0, 1]),
    ):
        assert Selection(special=special, first=first).counted(marks).tolist() == there
    plain = np.array([False, True, False])
    assert Selection(special=False).counted(plain).tolist() == [1, 0, 1]
    assert Selection(first=False).counted(plain).tolist() == [0, 1, 1]


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    for name, content in (
        ("a.txt", "One"),
        ("a.csv", "text\nOne\n"),
        ("a.json", '["One"]'),
        ("a.jsonl", '"One"\n'),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8-sig")
        assert from_file(tmp_path / name) == [Text("One")]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_line_feeds_end_a_row_of_a_table(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"text,id\nOne{mark}still one,1\nTwo,2\n", encoding="utf-8")
    assert from_file(path) == [Text(f"One{mark}still one"), Text("Two")]


def test_a_table_that_would_cut_or_join_texts_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    for content, words in (
        ("text\nHello, world\nTwo\n", "rows with 1 fields at most.*in quotes"),
        ('id,text\n1,"Hello\n2,Two\n3,Three\n', "unexpected end of data"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=words):
            from_file(path)
    path.write_text('text\n"Hello, world"\nTwo,\n')  # an empty field at the end loses nothing
    assert from_file(path) == [Text("Hello, world"), Text("Two")]


@pytest.mark.parametrize("text", ["null", "true", '["a"]', "{}"])
def test_an_item_whose_text_is_no_text_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(f'[{{"text": {text}}}]')
    with pytest.raises(UserError, match="must be a text, got"):
        from_file(path)

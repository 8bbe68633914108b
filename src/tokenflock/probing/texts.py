"""Where texts come from: a string, a file, standard input, ready token ids, a dataset, or Python's
own manual.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenflock.errors import UserError, require
from tokenflock.files import parsed_json, received, require_expandable

# texts, or ready ids, that lie beside a model
PROMPTS = ("prompts.json", "prompts.csv", "prompts.txt")
MOST = 2**30  # bytes of a file that is read
_TABLES = {".csv": ",", ".tsv": "\t"}  # and what parts their columns
_LINES = (".jsonl", ".ndjson")  # an item of JSON on each line
_WRAPPED = 300  # characters: a longer line was not wrapped by hand


@dataclass(frozen=True)
class Text:
    """A text, or the token ids of one for a model without a tokenizer (`special`: the places of its
    special tokens).
    """

    text: str
    ids: tuple[int, ...] | None = None
    special: tuple[int, ...] = ()


Texts = Any  # a text, a path, or a list of texts: `as_texts` raises on the rest


def as_texts(texts: Texts) -> list[Text]:
    """One text or many; a `Path` is read, a plain string is a text itself.

    >>> as_texts("Tokens move on a sphere.")
    [Text(text='Tokens move on a sphere.', ids=None, special=())]
    """
    if isinstance(texts, (str, Text)):
        texts = [texts]
    elif isinstance(texts, os.PathLike):
        texts = from_file(texts)
    # a mapping would give its keys, an open file its lines, and neither is a sequence
    given = list(texts) if isinstance(texts, Sequence) else []
    items = [Text(item) if isinstance(item, str) else item for item in given]
    require(
        bool(items) and all(isinstance(item, Text) for item in items),
        "texts",
        "a text, a Path, or a list of texts",
        f"{type(texts).__name__} {texts!r:.60}".replace("\n", " "),
        "pass a list of strings, and ready token ids as Text('name', ids=(2, 7, 3))",
    )
    return items


def from_file(path: str | os.PathLike[str], pipe: bool = True) -> list[Text]:
    """Return the texts of a file: paragraphs of a plain one, the column `text` of a .csv or .tsv,
    items of a .json list or of the lines of a .jsonl (`{"text", "ids"}` or strings).
    """
    path = Path(path)
    told = content(path, pipe=pipe)
    kind = path.suffix.lower()
    if kind == ".json" or kind in _LINES:
        return _items(told, path, lines=kind in _LINES)
    require_expandable(told.encode(), b"\n", path)  # each line may be a text
    texts = _rows(told, path, _TABLES[kind]) if kind in _TABLES else paragraphs(told)
    if not texts:
        raise UserError(f"{path} holds no text")
    return texts


def content(path: str | os.PathLike[str], remedy: str = "", pipe: bool = True) -> str:
    """A file as one text, or one line that says why it is none, with a remedy at its end; a `pipe`
    too, unless it lies where a file was looked for.
    """
    try:
        data = received(path, MOST, pipe)
        return io.TextIOWrapper(
            io.BytesIO(data), encoding="utf-8-sig"
        ).read()  # without a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(f"{path} is not a text file that can be read ({why}){remedy}") from None


def writable(text: str) -> bool:
    """Whether UTF-8 can write a text: no half of a pair of surrogates stands in it alone.

    >>> writable("\\u00e4"), writable("\\ud800")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    """A text as netCDF can hold it: what UTF-8 cannot write and the character zero are marked.

    >>> storable("a\\0b") == "a\\ufffdb"
    True
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def from_stdin() -> list[Text]:
    """The paragraphs on standard input."""
    texts = paragraphs(sys.stdin.read())
    if not texts:
        raise UserError(
            "standard input holds no text; write e.g.: tokenflock probe MODEL --text - < essay.txt"
        )
    return texts


def paragraphs(content: str) -> list[Text]:
    r"""A text cut at its blank lines, and at every line where lines are so long that each is a
    paragraph (as in WikiText).

    >>> [part.text for part in paragraphs("One.\nStill one.\n\nTwo.")]
    ['One.\nStill one.', 'Two.']
    """
    blocks = re.split(r"\n\s*\n", content)
    return _texts(part for block in blocks for part in _unwrapped(block))


def _unwrapped(block: str) -> list[str]:
    lines = block.splitlines()
    return lines if any(len(line) > _WRAPPED for line in lines) else [block]


def beside(folder: str | os.PathLike[str]) -> list[Text] | None:
    """The texts in the file `prompts.json` (ready ids), `.csv` or `.txt` of a model's folder, or
    None where there is none.
    """
    paths = [Path(folder) / name for name in PROMPTS]
    return next((from_file(path, pipe=False) for path in paths if path.exists()), None)


def built_in() -> list[Text]:
    """English that every Python brings along: the topics of its manual, in alphabetical order.

    >>> len(built_in()) > 50
    True
    """
    from pydoc_data.topics import topics

    return _texts(topics[name] for name in sorted(topics))


def wikitext(split: str = "test") -> list[Text]:
    """The paragraphs of WikiText-103, from the hub or its cache (package `datasets`)."""
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UserError(
            "WikiText needs the package datasets (pip install datasets), or a file: --text"
            " wikitext.txt"
        ) from None
    try:
        rows = datasets.load_dataset("Salesforce/wikitext", "wikitext-103-v1", split=split)["text"]
    except Exception as error:  # of many kinds, all of them about the network
        raise UserError(
            f"WikiText-103 is neither in the cache nor within reach ({type(error).__name__}); where"
            " there is a network, save its text to a file, bring it, and write --text FILE"
        ) from None
    return _texts(rows)


def _texts(parts: Iterable[str]) -> list[Text]:
    return [Text(part.strip()) for part in parts if part.strip()]


def _rows(told: str, path: Path, comma: str) -> list[Text]:
    try:
        # only line feeds end a row: str.splitlines would cut texts at U+2028 and the like, too
        table = csv.DictReader(io.StringIO(told), delimiter=comma, strict=True)
        columns = list(table.fieldnames or [])
        wanted = "a table whose first line names a column 'text'"
        remedy = "name the column of the texts so; others are not read"
        require(columns.count("text") == 1, str(path), wanted, f"{columns!r:.80}", remedy)
        rows = list(table)
        long = next((row for row in rows if any(row.get(None, ()))), None)
        fields = f"a table of rows with {len(columns)} fields at most"
        quoted = 'put texts that contain a comma or a tab in quotes: "a, b"'
        require(long is None, str(path), fields, f"a row that begins {long!r:.60}", quoted)
        return _texts(row["text"] or "" for row in rows)
    except csv.Error as error:
        raise UserError(f"{path} is no table that can be read ({error})") from None


def _items(told: str, path: Path, lines: bool) -> list[Text]:
    wanted = 'a list of texts or of items {"text": ..., "ids": [...]}'
    data = told.encode()
    if lines:
        require_expandable(data, b",[{:\n", path)
    try:
        if lines:
            items = [json.loads(line) for line in told.split("\n") if line.strip()]
        else:
            items = parsed_json(data, path)
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON that can be read ({error})") from None
    require(isinstance(items, list) and len(items) > 0, str(path), wanted, type(items).__name__)
    return [_item(item, path, wanted) for item in items]


def _item(item: Any, path: Path, wanted: str) -> Text:
    item = {"text": item} if isinstance(item, str) else item
    right = isinstance(item, dict) and ("text" in item or item.get("ids") is not None)
    require(right, str(path), wanted, f"{item!r:.60}")
    text, ids, special = item.get("text", ""), item.get("ids"), item.get("special") or []
    where = f"in {path}"
    right = isinstance(text, str) or type(text) in (int, float)
    require(right, f"text {where}", "a text", f"{text!r:.60}", f"write {wanted}")
    text = str(text)
    require(writable(text), f"text {where}", "one that UTF-8 can write", f"{text!a:.60}")
    for name, numbers in (("ids", ids), ("special", special)):
        right = numbers is None or (isinstance(numbers, list) and all(map(_whole, numbers)))
        got = f"{numbers!r:.60}"
        require(right, f"{name} {where}", "whole numbers from 0", got, f"write {wanted}")
    return Text(text, None if ids is None else tuple(ids), tuple(special))


def _whole(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**31

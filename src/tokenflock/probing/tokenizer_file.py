"""A file tokenizer.json that came with a model: the library obeys it also where it makes a text
longer and longer, or fills it up to any length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenflock.errors import require
from tokenflock.probing.folders import described

PARTS = 32  # normalizers, one after the other; as many pre-tokenizers
PADDING = 2**20  # tokens that a text may be filled up to
SPECIAL = 1000  # tokens that a template may add to a text
_ONCE = ("ByteLevel", "Precompiled")  # each of them writes several characters for one
PREPENDED = 64  # characters that one part may put before a text
_PATTERNS = 8  # replaced patterns: each may double a text, by what it writes between characters
_INSIDE = ("normalizers", "pretokenizers", "processors")


def harmless(path: Path) -> None:
    """Refuse a tokenizer that lengthens a text without need."""
    told = described(path)
    for name in ("normalizer", "pre_tokenizer", "post_processor"):
        _check_parts(f"{name} in {path}", list(_parts(told.get(name))))
    _check_templates(f"post_processor in {path}", list(_parts(told.get("post_processor"))))
    _check_padding(told.get("padding"), path)


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """A part and those inside it."""
    left = [part]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            yield part
            left += [part.get(name) for name in _INSIDE]


def _check_parts(where: str, parts: list[dict[str, Any]]) -> None:
    kinds = Counter(str(part.get("type")) for part in parts)
    count = len(parts) - kinds["Sequence"]
    require(len(parts) <= 2 * PARTS and count <= PARTS, where, f"at most {PARTS} parts", count)
    for kind in _ONCE:
        require(kinds[kind] <= 1, where, f"of one {kind}", kinds[kind])
    replaced = [part for part in parts if part.get("type") == "Replace"]
    for part in replaced:
        longer = f"{part.get('pattern')!r:.60} by {part.get('content')!r:.30}"
        require(not _lengthens(part), where, "one that lengthens no text", f"a Replace of {longer}")
    for part in parts:
        put = part.get("prepend")
        long = isinstance(put, str) and len(put) > PREPENDED
        require(
            not long, where, f"one that prepends at most {PREPENDED} characters", f"{put!r:.30}"
        )
    patterns = sum(_plain(part) is None and part.get("content") != "" for part in replaced)
    require(patterns <= _PATTERNS, where, f"of at most {_PATTERNS} replaced patterns", patterns)


def _check_templates(where: str, parts: list[dict[str, Any]]) -> None:
    """Refuse templates that repeat a text, or add many special tokens to it."""
    for part in parts:
        pieces, told = part.get("single"), part.get("special_tokens")
        kinds = Counter[str]()
        for piece in pieces if isinstance(pieces, list) else ():
            kinds.update(_added(piece, told if isinstance(told, dict) else {}))
        require(
            kinds["text"] <= 1, where, "a template with one text", f"one with {kinds['text']:,}"
        )
        many = f"{kinds['special']:,}"
        require(kinds["special"] <= SPECIAL, where, f"to add at most {SPECIAL:,} tokens", many)


def _added(piece: Any, told: dict[str, Any]) -> dict[str, int]:
    """What a piece of a template adds to a text: the text itself, or so many special tokens."""
    piece = piece if isinstance(piece, dict) else {}
    special = piece.get("SpecialToken")
    name = special.get("id") if isinstance(special, dict) else None
    token = told.get(name) if isinstance(name, str) else None
    ids = token.get("ids") if isinstance(token, dict) else None
    return {"text": int("Sequence" in piece), "special": len(ids) if isinstance(ids, list) else 0}


def _plain(part: dict[str, Any]) -> str | None:
    """The string that a Replace looks for; None where it is a pattern."""
    pattern = part.get("pattern")
    plain = pattern.get("String") if isinstance(pattern, dict) else None
    return plain if isinstance(plain, str) else None


def _lengthens(part: dict[str, Any]) -> bool:
    """Whether a Replace writes more characters than it takes away, one at least for a pattern."""
    content, plain = part.get("content"), _plain(part)
    return isinstance(content, str) and len(content) > (1 if plain is None else len(plain))


def _check_padding(padding: Any, path: Path) -> None:
    if not isinstance(padding, dict):
        return
    strategy = padding.get("strategy")
    fixed = strategy.get("Fixed") if isinstance(strategy, dict) else None
    for value in (fixed, padding.get("pad_to_multiple_of")):
        long = isinstance(value, (int, float)) and value > PADDING
        require(not long, f"padding in {path}", f"to at most {PADDING:,} tokens", f"{value!r:.40}")

"""A file tokenizer.json that came with a model: the library obeys it also where it makes a text
longer and longer, or fills it up to any length.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenflock.errors import UserError, require
from tokenflock.files import received

MOST = 2**28  # bytes of a tokenizer.json that is read
PARTS = 32  # normalizers, one after the other; as many pre-tokenizers
PADDING = 2**20  # tokens that a text may be filled up to
_ONCE = ("ByteLevel", "Precompiled")  # each of them writes several characters for one
_PATTERNS = 8  # replaced patterns: each may double a text, by what it writes between characters
_INSIDE = ("normalizers", "pretokenizers")


def harmless(path: Path) -> None:
    """Refuse a tokenizer that lengthens a text without need. A file that is not there is none."""
    try:
        told = json.loads(received(path, MOST))
    except UserError:
        raise
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON that can be read ({error})") from None
    require(isinstance(told, dict), str(path), "an object", type(told).__name__)
    for name in ("normalizer", "pre_tokenizer"):
        _check_parts(f"{name} in {path}", list(_parts(told.get(name))))
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
    patterns = sum(_plain(part) is None and part.get("content") != "" for part in replaced)
    require(patterns <= _PATTERNS, where, f"of at most {_PATTERNS} replaced patterns", patterns)


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

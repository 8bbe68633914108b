"""The byte pairs of a config.json: only a tokenizer such as training writes. The library would obey
any other, also one that never ends or fills the memory.
"""

from __future__ import annotations

from typing import Any

from tokenflock.errors import require

LONGEST = 2**16  # characters of a token
_NOTHING = ("normalizer", "padding", "truncation")
_LEVELS = ("pre_tokenizer", "post_processor", "decoder")
_OFF = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
_OFF += ("fuse_unk", "byte_fallback", "ignore_merges")
_KNOWN = {"version", "added_tokens", "model", *_NOTHING, *_LEVELS}


def plain_pairs(described: Any) -> None:
    """Refuse what is no byte-pair tokenizer on the level of bytes, with nothing around it."""
    _object("byte_pairs", described, _KNOWN)
    for name in _NOTHING:
        _must(described.get(name) is None, name, "null", described.get(name))
    _must(not described.get("added_tokens"), "added_tokens", "[]", described.get("added_tokens"))
    for name in _LEVELS:
        part = described.get(name)
        level = isinstance(part, dict) and part.get("type") == "ByteLevel"
        plain = level and all(isinstance(value, (bool, str)) for value in part.values())
        _must(plain, name, "ByteLevel", part)
    _model(described.get("model"))


def _model(model: Any) -> None:
    _object("model", model, {"type", "vocab", "merges", *_OFF})
    _must(model.get("type") == "BPE", "model.type", "BPE", model.get("type"))
    for name in _OFF:
        _must(not model.get(name), f"model.{name}", "null or false", model.get(name))
    vocab, merges = model.get("vocab"), model.get("merges")
    _must(isinstance(merges, list), "model.merges", "a list", merges)
    right = isinstance(vocab, dict) and all(type(number) is int for number in vocab.values())
    right = right and sorted(vocab.values()) == list(range(len(vocab))) and len(vocab) > 0
    _must(right, "model.vocab", "tokens numbered from 0, none left out", vocab)
    longest = max(map(len, vocab))
    _must(longest <= LONGEST, "model.vocab", f"tokens of at most {LONGEST:,} characters", longest)


def _object(name: str, value: Any, known: set[str]) -> None:
    require(isinstance(value, dict), name, "an object", f"{value!r:.80}")
    unknown = sorted(set(value) - known)
    require(not unknown, name, "one that training wrote", f"also {', '.join(unknown)[:80]}")


def _must(right: bool, name: str, wanted: str, got: Any) -> None:
    require(right, f"byte_pairs.{name}", wanted, f"{got!r:.80}")

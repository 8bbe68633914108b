"""Text as numbers: a file or Python's own manual, cut into characters or byte pairs, nine tenths to
learn from.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock.errors import UserError, require
from tokenflock.files import whole
from tokenflock.gpt.pairs import plain_pairs
from tokenflock.probing.texts import built_in, content, writable

HELD_OUT = 0.1  # share of the text, at its end, that is only validated on


@dataclass(frozen=True)
class Characters:
    """Every character is a token.

    >>> letters = Characters.of("flock")
    >>> letters.decode(letters.encode("cof"))
    'cof'
    """

    letters: str

    @classmethod
    def of(cls, text: str) -> Characters:
        """The characters of a text."""
        return cls("".join(sorted(set(text))))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {letter: k for k, letter in enumerate(self.letters)}

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.letters)

    def encode(self, text: str) -> np.ndarray:
        """A text as token ids."""
        missing = sorted(set(text) - set(self.letters))
        if missing:
            raise UserError(
                f"the model knows no {missing[0]!r}: its {self.size} characters are"
                f" {self.letters!r}"
            )
        return np.asarray([self._places[letter] for letter in text], np.int32)

    def decode(self, ids: Any) -> str:
        """Token ids as a text."""
        return "".join(self.letters[k] for k in ids)

    def words(self, ids: Any) -> list[str]:
        """Each token by itself, as it is written."""
        return [self.letters[k] for k in ids]

    def as_json(self) -> dict[str, Any]:
        """The alphabet in config.json; `from_json` reads it."""
        return {"characters": self.letters}


@dataclass(frozen=True)
class BytePairs:
    """Byte-pair encoding, learned from the text by the library `tokenizers`."""

    source: str = field(repr=False)  # the tokenizer as JSON

    @classmethod
    def of(cls, text: str, size: int) -> BytePairs:
        """Pairs learned from a text, until there are `size` tokens."""
        tokenizers = _tokenizers()
        require(size >= 257, "byte_pairs", "257 or more: the 256 bytes and some pairs", size)
        made = tokenizers.ByteLevelBPETokenizer()
        made.train_from_iterator(
            text.splitlines(keepends=True), vocab_size=size, show_progress=False
        )
        return cls(json.dumps(json.loads(made.to_str())))  # as `from_json` writes it

    @cached_property
    def _made(self) -> Any:
        return _tokenizers().Tokenizer.from_str(self.source)

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._made.get_vocab_size()

    def encode(self, text: str) -> np.ndarray:
        """A text as token ids."""
        return np.asarray(self._made.encode(text).ids, np.int32)

    def decode(self, ids: Any) -> str:
        """Token ids as a text."""
        return self._made.decode([int(token) for token in ids])

    def words(self, ids: Any) -> list[str]:
        """Each token by itself, as it is written."""
        return [self._made.id_to_token(int(token)) for token in ids]

    def as_json(self) -> dict[str, Any]:
        """The alphabet in config.json; `from_json` reads it."""
        return {"byte_pairs": json.loads(self.source)}


Alphabet = Characters | BytePairs


def from_json(described: dict[str, Any]) -> Alphabet:
    """The alphabet that `as_json` described, and nothing else that the library could read."""
    if isinstance(described, dict) and "characters" in described:
        letters = described["characters"]
        right = isinstance(letters, str) and len(set(letters)) == len(letters) > 0
        require(right and writable(letters), "characters", "different letters", f"{letters!r:.80}")
        return Characters(letters)
    require(
        isinstance(described, dict) and "byte_pairs" in described,
        "alphabet",
        "an object with characters or byte_pairs",
        f"{described!r:.80}",
    )
    plain_pairs(described["byte_pairs"])
    pairs = BytePairs(json.dumps(described["byte_pairs"]))
    size = len(described["byte_pairs"]["model"]["vocab"])
    require(pairs.size == size, "byte_pairs", f"a vocabulary of {size} tokens", pairs.size)
    return pairs


def read(path: str | os.PathLike[str] | None = None) -> str:
    """A file as one text; without a path the manual of Python, which every installation carries.

    >>> len(read()) > 100_000
    True
    """
    if path is None:
        return "\n\n".join(topic.text for topic in built_in())
    return content(path, "; give one with --text FILE")


def split(ids: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    """What to learn from, and what to validate on: the end of the text."""
    cut = int(len(ids) * (1 - HELD_OUT))
    train, valid = ids[:cut], ids[cut:]
    if len(valid) < context + 1:
        least = int((context + 2) / HELD_OUT)
        raise UserError(
            f"the text has {len(ids)} tokens, too few for a context of {context}: its last tenth"
            f" must hold one window; bring {least} or more, or take a shorter context"
        )
    return train, valid


def passages(held_out: np.ndarray, context: int, count: int = 8) -> np.ndarray:
    """Windows of the held-out text, evenly spread, (count, context): the prompts that tokens are
    watched on.
    """
    starts = np.unique(np.linspace(0, len(held_out) - context, count).astype(int))
    return np.stack([held_out[begin : begin + context] for begin in starts])


def save_passages(folder: Path, alphabet: Alphabet, ids: np.ndarray) -> None:
    """Passages as the file `prompts.json` beside a model, where `probe` finds them."""
    items = [{"text": alphabet.decode(row), "ids": row.tolist()} for row in ids]
    with whole(folder / "prompts.json") as part:
        part.write_text(json.dumps(items, indent=1) + "\n", encoding="utf-8")


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise UserError(
            "byte pairs need the library tokenizers; write: pip install tokenizers, or train on"
            " characters"
        ) from None
    return tokenizers

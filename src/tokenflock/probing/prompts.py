"""Texts as token ids, chosen by length and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokenflock.errors import UserError, require
from tokenflock.probing.fetching import quiet
from tokenflock.probing.loading import Loaded
from tokenflock.probing.texts import Text


@dataclass(frozen=True)
class Prompt:
    """Token ids, which of them are special ([CLS], [SEP], ...), and the tokens as words."""

    text: str
    ids: np.ndarray
    special: np.ndarray
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def counted(self, special: bool, first: bool) -> np.ndarray:
        """Which tokens count: all, or those that are not special, or those after the first."""
        return np.where(self.special, special, True) & np.where(
            np.arange(len(self)) == 0, first, True
        )


def encode(loaded: Loaded, text: Text, length: int) -> Prompt:
    """The first `length` tokens of a text as the model reads it, special tokens included."""
    if hasattr(loaded, "encode"):  # a model that was trained here
        return loaded.encode(text, length)
    if text.ids is not None:
        return _ready(loaded, text, length)
    with quiet():
        found = loaded.tokenizer(
            text.text, truncation=True, max_length=length, return_special_tokens_mask=True
        )
    ids = np.asarray(found["input_ids"], dtype=np.int64)
    special = np.asarray(found["special_tokens_mask"], dtype=bool)
    return Prompt(
        text.text, ids, special, tuple(loaded.tokenizer.convert_ids_to_tokens(ids.tolist()))
    )


def choose(
    loaded: Loaded,
    texts: Sequence[Text],
    count: int | None = None,
    minimum: int = 0,
    seed: int = 0,
    length: int = 512,
) -> list[Text]:
    """Up to `count` texts of more than `minimum` tokens (all of them unless given), drawn with a
    seed, in their own order.

    The rule of Figure 1 of arXiv 2312.10794 is `minimum=300`, `length=512`.
    """
    order = np.random.default_rng(seed).permutation(len(texts))
    found: list[int] = []
    longest = 0
    for k in order:
        size = len(encode(loaded, texts[k], max(length, minimum + 1)))
        longest = max(longest, size)
        if size > minimum:
            found.append(int(k))
        if len(found) == count:
            break
    if not found:
        raise UserError(
            f"no text has more than {minimum} tokens: the longest has {longest}; ask for fewer, or"
            " bring longer texts"
        )
    return [texts[k] for k in sorted(found)]


def _ready(loaded: Loaded, text: Text, length: int) -> Prompt:
    """Ids that were given. Special are those that the text names, for without a tokenizer nobody
    else knows.
    """
    size = loaded.model.config.vocab_size
    ids = np.asarray(text.ids, dtype=np.int64)
    fits = len(ids) > 0 and bool(((ids >= 0) & (ids < size)).all())
    require(
        fits,
        "ids",
        f"of tokens from 0 to {size - 1}",
        f"{ids.min()} to {ids.max()}" if len(ids) else "none",
    )
    special = np.isin(np.arange(len(ids)), text.special)
    return Prompt(text.text, ids[:length], special[:length], tuple(map(str, ids[:length])))

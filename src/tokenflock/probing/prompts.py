"""Texts chosen by length and seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenflock.errors import UserError, require
from tokenflock.probing.model import Model
from tokenflock.probing.texts import Text


def choose(
    model: Model,
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
    require(count is None or count >= 1, "prompts", "1 or more", count)
    require(seed >= 0, "seed", "0 or more", seed)
    order = np.random.default_rng(seed).permutation(len(texts))
    chosen: list[int] = []
    longest = 0
    for k in order:
        size = len(model.encode(texts[k], max(length, minimum + 1)))
        longest = max(longest, size)
        if size > minimum:
            chosen.append(int(k))
        if len(chosen) == count:
            break
    if not chosen:
        raise UserError(
            f"no text has more than {minimum} tokens: the longest has {longest}; ask for fewer, or"
            " bring longer texts"
        )
    return [texts[k] for k in sorted(chosen)]

"""Rung 1, the bigram: the next token depends on this one alone."""

from __future__ import annotations

from tokenflock.gpt.language import LanguageModel, embed, fresh
from tokenflock.gpt.settings import Shape
from tokenflock.shapes import Array


class Bigram(LanguageModel):
    """A table of logits: row k tells what follows token k. Its best loss is the conditional entropy
    H(next | this).

    logits_t = table[token_t]
    """

    table: Array  # (vocab, vocab)

    def __init__(self, shape: Shape, key: Array):
        self.table = fresh(key, shape.vocab, shape.vocab)

    def __call__(self, tokens: Array, key: Array | None = None) -> Array:
        return embed(self.table, tokens)  # (batch, time) -> (batch, time, vocab)

    def states(self, tokens: Array) -> Array:
        """The stream of tokens, (1, batch, time, vocab)."""
        return embed(self.table, tokens)[None]  # (1, batch, time, vocab): nothing moves

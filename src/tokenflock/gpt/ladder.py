"""The rungs by name, from the bigram to the GPT."""

from __future__ import annotations

from collections.abc import Callable

from tokenflock.gpt.bigram import Bigram
from tokenflock.gpt.feed_forward import Thinking
from tokenflock.gpt.gpt import GPT
from tokenflock.gpt.head import OneHead
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.multi_head import ManyHeads
from tokenflock.gpt.residual import Residual
from tokenflock.gpt.settings import RUNGS, Shape
from tokenflock.shapes import Array

LADDER: dict[str, Callable[[Shape, Array], LanguageModel]] = dict(
    zip(RUNGS, (Bigram, OneHead, ManyHeads, Thinking, Residual, GPT), strict=True)
)


def build(shape: Shape, key: Array) -> LanguageModel:
    """A fresh model of the rung that the shape names.

    >>> import jax
    >>> type(build(Shape(rung="bigram"), jax.random.key(0))).__name__
    'Bigram'
    """
    return LADDER[shape.rung](shape, key)

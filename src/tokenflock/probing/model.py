"""What probing needs of a model. Whoever has these few things can be probed, wherever its weights
come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from tokenflock.probing.blocks import TrainedLayer
from tokenflock.probing.options import Recording, Variant
from tokenflock.probing.texts import Text


@dataclass(frozen=True)
class Facts:
    """What is known of a model without running it; the recipe of a probe tells it."""

    name: str
    source: str | None  # the folder, or the name on the hub
    architecture: str
    width: int
    heads: int
    depth: int  # passes that it runs
    own_depth: int  # passes of its config
    room: int  # the most tokens that it takes
    dtype: str
    revision: str = ""  # the commit on the hub, where it is known
    variant: Variant = field(default_factory=Variant)


@dataclass(frozen=True)
class Prompt:
    """Token ids, which of them are special ([CLS], [SEP], ...), and the tokens as words."""

    text: str
    ids: np.ndarray
    special: np.ndarray
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Trace:
    """Arrays of one batch; padding is zero. Layer 0 is what goes into the first block; attention
    and the stream after attention belong to the block that ends at their layer, so they are NaN at
    layer 0."""

    x: np.ndarray  # (prompt, layer, token, coord)
    attention: np.ndarray | None = None  # (prompt, layer, head, token, other)
    entropy: np.ndarray | None = None  # (prompt, layer, head, token), in nats
    x_attention: np.ndarray | None = None  # (prompt, layer, token, coord)


@runtime_checkable
class Model(Protocol):
    """A Transformer that can be probed: `HuggingFaceModel`, `OwnGPT`, or one of your own."""

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        ...

    def digest(self) -> str:
        """sha256 of all weights, by name."""
        ...

    def encode(self, text: Text, length: int) -> Prompt:
        """The first `length` tokens of a text as the model reads it, special tokens included."""
        ...

    def record(self, prompts: Sequence[Prompt], size: int, recording: Recording) -> Trace:
        """Run a batch of prompts; arrays are padded to `size` tokens."""
        ...

    def blocks(self) -> list[TrainedLayer]:
        """The layers as matrices, in order; where layers are one, that one. An error where matrices
        do not tell them.
        """
        ...

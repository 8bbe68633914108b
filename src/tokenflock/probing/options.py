"""What can be asked of a probe, in three small objects: which variant of the model runs, what is
recorded of it, and which tokens count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokenflock.errors import require, require_kinds


@dataclass(frozen=True)
class Variant:
    """How a model departs from its config, and where and in which numbers it runs."""

    depth: int | None = None
    "passes of the layer, for models whose layers share their weights (ALBERT)"
    heads: int | None = None
    "cut the same weights into another number of heads"
    untrained: bool = False
    "the same architecture with fresh weights: the control"
    seed: int = 0
    "of the fresh weights"
    dtype: str | None = None
    "'float32' unless given; 'float64' (deep models amplify rounding), 'bfloat16', 'float16'"
    device: str | None = None
    "where torch runs; a GPU if there is one unless given"

    def __post_init__(self) -> None:
        require_kinds(type(self), vars(self))

    def of_depth(self, depth: int | None) -> Variant:
        """The same with a depth that was given beside it, which must be no other one."""
        if depth is None:
            return self
        require(self.depth in (None, depth), "depth", f"that of the variant, {self.depth}", depth)
        return replace(self, depth=depth)


@dataclass(frozen=True)
class Recording:
    """What to record of a model."""

    layers: Sequence[int] | None = None
    "which layers, 0 being what goes into the first block, negative from the end; all unless given"
    normalise: bool = False
    "divide tokens by their length"
    attention: bool = False
    "the attention matrices, (prompt, layer, head, token, other)"
    entropy: bool = False
    "the entropy of each row of attention, in nats"
    sublayers: bool = False
    "the stream between attention and feed-forward part, as `x_attention`"
    final_norm: bool = False
    "the last layer after the norm that decoders end with, instead of the stream before it"
    states: bool = True
    "the tokens `x`; without, only what is observed"

    def __post_init__(self) -> None:
        require_kinds(type(self), vars(self))

    @property
    def attends(self) -> bool:
        """Whether the attention matrices are looked at."""
        return self.attention or self.entropy

    def places(self, depth: int) -> tuple[int, ...]:
        """The layers of a model of this depth that are recorded, in order.

        >>> Recording(layers=[-1, 0]).places(12)
        (0, 12)
        """
        if self.layers is None:
            return tuple(range(depth + 1))
        places = [int(layer) + (depth + 1 if layer < 0 else 0) for layer in self.layers]
        fits = bool(places) and all(0 <= place <= depth for place in places)
        require(fits, "layers", f"from 0 to {depth}", list(self.layers))
        return tuple(sorted(set(places)))


@dataclass(frozen=True)
class Selection:
    """Which tokens of a text count. The model sees all of them up to `length`."""

    special: bool = True
    "let special tokens ([CLS], [SEP]) count"
    first: bool = True
    "let the first token (the attention sink of decoders) count"
    length: int | None = None
    "tokens a text is cut to; 512 or what the model takes unless given"

    def __post_init__(self) -> None:
        require_kinds(type(self), vars(self))

    def counted(self, special: np.ndarray) -> np.ndarray:
        """Which tokens count, where `special` tells the special ones.

        >>> Selection(special=False).counted(np.array([True, False, False])).tolist()
        [False, True, True]
        """
        first = np.arange(len(special)) == 0
        return np.where(special, self.special, True) & np.where(first, self.first, True)

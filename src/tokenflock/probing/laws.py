"""The layers of a real Transformer as laws of motion: `Block`s of named parts."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tokenflock.dynamics.block import Block
from tokenflock.errors import require
from tokenflock.probing.loading import load
from tokenflock.probing.options import Variant


@runtime_checkable
class Lawful(Protocol):
    """A model that knows its layers as `Block`s, where matrices alone do not tell them."""

    def laws(self) -> list[Block]:
        """The layers in order; where layers are one, that one."""
        ...


def block_of(model: Any, layer: int = 0, variant: Variant = Variant()) -> Block:
    """One layer of a model, counted from 0, as a `Block`: a step of `Layer(h=1)` is the layer.

    The model is anything that `load` takes. Its parts are the model's: matrices, biases, the gains
    of its norms, rotary positions, gates. What is no `Block` is refused by name.
    """
    loaded = load(model, variant)
    laws = loaded.laws() if isinstance(loaded, Lawful) else [b.as_block() for b in loaded.blocks()]
    depth = loaded.facts.depth
    require(0 <= layer < depth, "layer", f"from 0 to {depth - 1}", layer)
    return laws[layer % len(laws)]

"""What is special to an architecture, as one small object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tokenflock.dynamics.block import Block
from tokenflock.probing.blocks import TrainedLayer

Side = Literal["input", "output", "added"]


@dataclass(frozen=True)
class Tap:
    """The place in a block at which the stream after attention can be read: what goes into a part,
    what comes out of it, or what comes out of it added to what goes into the block."""

    part: str
    side: Side = "output"


@dataclass(frozen=True)
class Architecture:
    """What probing cannot read off a config of transformers. Where nothing is said, hidden states
    and attention can be recorded and no more."""

    names: tuple[str, ...]
    "`model_type` of the configs that it is for"
    tap: Tap | None = None
    "where the stream is after attention alone"
    block: Callable[[Any, Any], TrainedLayer] | None = None
    "a layer and the config as matrices, where those tell the layer"
    law: Callable[[Any, Any], Block] | None = None
    "a layer and the config as a `Block` of parts, where matrices alone do not tell the layer"
    plain_heads: bool = False
    "whether heads are a plain cut of one matrix, so that their number can be changed"
    shared: Callable[[Any], bool] = lambda config: False
    "whether all layers of a config are one, which can be passed again"
    reserved: int = 0
    "positions of the config that no token takes"

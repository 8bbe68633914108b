"""BERT and ELECTRA: layer norms after each part."""

from __future__ import annotations

from typing import Any

from tokenflock.probing.architectures._matrices import Parts, block
from tokenflock.probing.architectures.architecture import Architecture, Tap
from tokenflock.probing.blocks import TrainedLayer

AFTER_ATTENTION = Tap("attention")  # the attention part ends with the layer norm


def bert_block(layer: Any, config: Any) -> TrainedLayer:
    """A layer of BERT, or of one of its descendants, as matrices."""
    own, out = layer.attention.self, layer.attention.output
    parts = Parts(
        (own.query, own.key, own.value),
        out.dense,
        layer.intermediate.dense,
        layer.output.dense,
        out.LayerNorm,
        layer.output.LayerNorm,
    )
    return block(parts, config.num_attention_heads, config.hidden_act, causal=config.is_decoder)


ARCHITECTURE = Architecture(
    ("bert", "electra"), tap=AFTER_ATTENTION, block=bert_block, plain_heads=True
)

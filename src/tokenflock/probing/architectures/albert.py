"""ALBERT: one layer, or a few, passed again and again; layer norms after each part."""

from __future__ import annotations

from typing import Any

from tokenflock.probing.architectures._matrices import Parts, block
from tokenflock.probing.architectures.architecture import Architecture, Tap
from tokenflock.probing.blocks import TrainedLayer


def _block(layer: Any, config: Any) -> TrainedLayer:
    attention = layer.attention
    parts = Parts(
        (attention.query, attention.key, attention.value),
        attention.dense,
        layer.ffn,
        layer.ffn_output,
        attention.LayerNorm,
        layer.full_layer_layer_norm,
    )
    return block(parts, config.num_attention_heads, config.hidden_act)


ARCHITECTURE = Architecture(
    ("albert",),
    tap=Tap("attention"),  # its attention part ends with the layer norm
    block=_block,
    plain_heads=True,
    shared=lambda config: config.num_hidden_groups == 1,
)

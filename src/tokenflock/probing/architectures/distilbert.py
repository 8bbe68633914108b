"""DistilBERT: layer norms after each part, under names of its own."""

from __future__ import annotations

from typing import Any

from tokenflock.probing.architectures._matrices import Parts, block
from tokenflock.probing.architectures.architecture import Architecture, Tap
from tokenflock.probing.blocks import TrainedLayer


def _block(layer: Any, config: Any) -> TrainedLayer:
    attention = layer.attention
    parts = Parts(
        (attention.q_lin, attention.k_lin, attention.v_lin),
        attention.out_lin,
        layer.ffn.lin1,
        layer.ffn.lin2,
        layer.sa_layer_norm,
        layer.output_layer_norm,
    )
    return block(parts, config.num_attention_heads, config.activation)


ARCHITECTURE = Architecture(
    ("distilbert",), tap=Tap("sa_layer_norm"), block=_block, plain_heads=True
)

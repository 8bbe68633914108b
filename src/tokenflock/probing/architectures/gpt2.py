"""GPT-2: a decoder, with layer norms before each part."""

from __future__ import annotations

from typing import Any

from tokenflock.probing.architectures._matrices import Affine, Parts, array, block
from tokenflock.probing.architectures.architecture import Architecture, Tap
from tokenflock.probing.blocks import TrainedLayer


def _block(layer: Any, config: Any) -> TrainedLayer:
    d = config.hidden_size
    parts = Parts(
        [_transposed(layer.attn.c_attn, slice(k * d, (k + 1) * d)) for k in range(3)],
        _transposed(layer.attn.c_proj),
        _transposed(layer.mlp.c_fc),
        _transposed(layer.mlp.c_proj),
        layer.ln_1,
        layer.ln_2,
    )
    return block(
        parts,
        config.num_attention_heads,
        config.activation_function,
        scale=float(layer.attn.scaling),
        pre=True,
        causal=True,
    )


def _transposed(part: Any, place: slice = slice(None)) -> Affine:
    """GPT-2 keeps its matrices transposed, and Q, K, V in one."""
    return array(part.weight)[:, place].T, array(part.bias)[place]


ARCHITECTURE = Architecture(("gpt2",), tap=Tap("ln_2", "input"), block=_block, plain_heads=True)

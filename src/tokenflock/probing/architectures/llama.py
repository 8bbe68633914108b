"""Llama and what is built like it: RMS norms before each part, rotary positions, gates.

Rotary positions enter the attention, so matrices alone do not tell a layer; its `Block` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenflock.dynamics.block import Block
from tokenflock.errors import require
from tokenflock.parts import CausalMask, Gated, GivenHeads, LayerNorm, Mask, Pre, Rotary, WindowMask
from tokenflock.probing.architectures._matrices import array
from tokenflock.probing.architectures.architecture import Architecture, Tap
from tokenflock.probing.blocks import KNOWN


def _law(layer: Any, config: Any) -> Block:
    kind, attention = config.model_type, layer.self_attn
    plain = kind in ("llama", "mistral", "qwen2", "gemma")
    require(plain, "model", "a Llama, Mistral, Qwen2 or Gemma", f"{kind}, which norms its queries")
    rope = config.rope_parameters
    fixed = rope["rope_type"] == "default"
    require(fixed, "model", "one with plain rotary positions", f"rope type {rope['rope_type']}")
    act = str(config.hidden_act)
    require(act in KNOWN, "model", f"one with an activation of {', '.join(KNOWN)}", act)
    biased = layer.mlp.gate_proj.bias is not None
    require(not biased, "model", "one with gates without biases", "one with mlp_bias")
    return Block(
        heads=_heads(attention, config.num_attention_heads, config.num_key_value_heads),
        mask=_mask(attention),
        positions=Rotary(base=float(rope["rope_theta"])),
        feed_forward=_gated(layer.mlp, act),
        norm=Pre(_norm(layer.input_layernorm, kind), _norm(layer.post_attention_layernorm, kind)),
        beta=float(attention.scaling),
    )


def _heads(attention: Any, heads: int, groups: int) -> GivenHeads:
    """Queries of every head; keys and values are shared by groups of them."""
    arrays = {}
    for letter, part, count in (
        ("Q", attention.q_proj, heads),
        ("K", attention.k_proj, groups),
        ("V", attention.v_proj, groups),
    ):
        weight = array(part.weight)
        arrays[letter] = np.repeat(
            weight.reshape(count, -1, weight.shape[1]), heads // count, axis=0
        )
        if part.bias is not None:
            bias = array(part.bias).reshape(count, -1)
            arrays[letter.lower()] = np.repeat(bias, heads // count, axis=0)
    O = array(attention.o_proj.weight)
    arrays["O"] = np.moveaxis(O.reshape(O.shape[0], heads, -1), 1, 0)
    if attention.o_proj.bias is not None:
        arrays["o"] = array(attention.o_proj.bias)
    return GivenHeads(**arrays)


def _mask(attention: Any) -> Mask:
    window = getattr(attention, "sliding_window", None)
    window = getattr(attention.config, "sliding_window", None) if _mistral(attention) else window
    return CausalMask() if window is None else WindowMask(width=int(window))


def _mistral(attention: Any) -> bool:
    """Whether all layers of a model have the window of its config."""
    return attention.config.model_type == "mistral"


def _gated(mlp: Any, act: str) -> Gated:
    W, A, G = (array(part.weight) for part in (mlp.down_proj, mlp.up_proj, mlp.gate_proj))
    return Gated(W=W, A=A, G=G, activation=KNOWN[act])


def _norm(part: Any, kind: str) -> LayerNorm:
    """RMS norm; Gemma keeps its gain less one."""
    epsilon = part.eps if kind == "gemma" else part.variance_epsilon
    gain = array(part.weight) + (1 if kind == "gemma" else 0)
    return LayerNorm(gain=gain, epsilon=float(epsilon), centred=False)


ARCHITECTURE = Architecture(
    ("llama", "mistral", "qwen2", "qwen3", "gemma"),
    tap=Tap("post_attention_layernorm", "input"),
    law=_law,
)

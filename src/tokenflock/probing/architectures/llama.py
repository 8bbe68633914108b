"""Llama and what is built like it: norms before each part.

Rotary positions enter the attention, so matrices alone do not tell a layer.
"""

from __future__ import annotations

from tokenflock.probing.architectures.architecture import Architecture, Tap

ARCHITECTURE = Architecture(
    ("llama", "mistral", "qwen2", "qwen3", "gemma"), tap=Tap("post_attention_layernorm", "input")
)

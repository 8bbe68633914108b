"""Gemma 2 and 3: norms before and after each part.

Rotary positions enter the attention, so matrices alone do not tell a layer.
"""

from __future__ import annotations

from tokenflock.probing.architectures.architecture import Architecture, Tap

ARCHITECTURE = Architecture(
    ("gemma2", "gemma3_text"), tap=Tap("pre_feedforward_layernorm", "input")
)

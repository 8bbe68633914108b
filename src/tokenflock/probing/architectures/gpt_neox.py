"""GPT-NeoX and Pythia: attention and feed-forward part read the same tokens, side by side.

Rotary positions enter the attention, so matrices alone do not tell a layer.
"""

from __future__ import annotations

from tokenflock.probing.architectures.architecture import Architecture, Tap

ARCHITECTURE = Architecture(("gpt_neox",), tap=Tap("post_attention_dropout", "added"))

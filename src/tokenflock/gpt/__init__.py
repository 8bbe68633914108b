"""From bigram to GPT, trained here and watched as a flock: `from tokenflock.gpt import train,
sample, GPT`.

Read `bigram`, `head`, `multi_head`, `feed_forward`, `residual` and `gpt` in this order: each adds
one idea.
"""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "Bigram": "bigram",
    "OneHead": "head",
    "ManyHeads": "multi_head",
    "Thinking": "feed_forward",
    "Residual": "residual",
    "GPT": "gpt",
    "build": "ladder",
    "Shape": "settings",
    "Schedule": "settings",
    "preset": "settings",
    "train": "training",
    "validate": "training",
    "sample": "sampling",
    "load": "checkpoint",
    "probe": "probing",
    "Watcher": "watching",
    "refine": "flowing",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)

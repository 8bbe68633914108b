"""From bigram to GPT, trained here and watched as a flock: `from tokenflock.gpt import train, sample, GPT`.

Read `bigram`, `head`, `multi_head`, `feed_forward`, `residual` and `gpt` in this order: each adds one idea.
"""

from importlib import import_module as _import

_HOMES = {
    "Bigram": "bigram", "OneHead": "head", "ManyHeads": "multi_head", "Thinking": "feed_forward", "Residual": "residual",
    "GPT": "gpt", "build": "ladder", "Shape": "settings", "Schedule": "settings", "preset": "settings", "train": "training",
    "validate": "training", "sample": "sampling", "load": "checkpoint", "probe": "watching", "Watcher": "watching",
    "refine": "flowing",
}  # fmt: skip

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(_import(f"tokenflock.gpt.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tokenflock.gpt' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)

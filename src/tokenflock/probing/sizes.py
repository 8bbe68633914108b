"""Whether a config tells of a model as large as the weights beside it: transformers makes what the
config tells of, however large, before it compares the two.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenflock.errors import UserError, require
from tokenflock.probing._needs import torch, transformers
from tokenflock.probing.fetching import quiet
from tokenflock.probing.folders import described, weight_bytes

LAYERS = 1_000  # also experts and blocks: shared ones take no bytes of the weights
LITTLE = 2**24  # any model may have so large a size: positions may have no weights
SPARE = 2**26  # numbers that any model may hold beside its weights, in tables and masks
DENSE = 4  # numbers in a byte, where weights are of two bits each
_COUNTS = re.compile(r"(^|_)(layers?|blocks|experts)$|^(num_hidden_groups|inner_group_num)$")
_SIZES = re.compile(
    r"(^|_)(size|dim|heads?|embd|inner|positions|embeddings|ctx|d_model|d_ff|d_kv|hidden)$"
)


def plain_sizes(folder: Path) -> None:
    """Refuse numbers in config.json that no model with the weights of the folder can have."""
    path = folder / "config.json"
    most = max(weight_bytes(folder), LITTLE)
    for key, value in _numbers(described(path)):
        if _COUNTS.search(key):
            require(
                0 <= value <= LAYERS, f"{key} in {path}", f"from 0 to {LAYERS:,}", _short(value)
            )
        elif _SIZES.search(key):
            wanted = f"at most {most:,}, as much as the weights bear"
            require(value <= most, f"{key} in {path}", wanted, _short(value))


def no_larger(config: Any, folder: Path) -> None:
    """Refuse a config of a much larger model than the weights of the folder are."""
    most = DENSE * weight_bytes(folder) + SPARE
    shapes = _shapes(config)
    if sum(map(math.prod, shapes.values())) <= most:
        return
    name, shape = max(shapes.items(), key=lambda item: math.prod(item[1]))
    raise UserError(
        f"{folder / 'config.json'} tells of a larger model than its weights are, with {name} of"
        f" shape {shape}; mend {_blamed(config.to_dict(), shape, most)}, or bring the weights"
    )


def _blamed(described: dict[str, Any], shape: tuple[int, ...], most: float) -> str:
    """The keys that make a model so large: those of its largest table, or the largest number of
    parts.
    """
    if math.prod(shape) > most:
        keys = [key for key, value in described.items() if value == max(shape)]
        return " or ".join(keys) or "its sizes"
    parts = {key: value for key, value in _numbers(described) if _COUNTS.search(key)}
    return max(parts, key=lambda key: parts[key], default="its sizes")


def numbers(config: Any) -> int:
    """How many numbers the network of a config holds."""
    return sum(map(math.prod, _shapes(config).values()))


def _shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights and tables; nothing is there yet. Empty where the library itself
    refuses the config, which it will tell.
    """
    try:
        with torch.device("meta"), quiet():
            network = transformers.AutoModel.from_config(copy.deepcopy(config))
    except Exception:
        return {}
    parts = [*network.named_parameters(), *network.named_buffers()]
    return {name: tuple(part.shape) for name, part in parts}


def _numbers(described: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of a config by its key, those of the configs inside it too."""
    left = [described]
    while left:
        for key, value in left.pop().items():
            if isinstance(value, dict):
                left.append(value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                yield key, value


def _short(value: float) -> str:
    return f"{value!r:.40}"

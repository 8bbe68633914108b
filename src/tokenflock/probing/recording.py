"""One batch of prompts through a model: hidden states, attention, the stream between the sublayers,
as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenflock.errors import SimulationError
from tokenflock.probing._needs import torch
from tokenflock.probing.adapters import after_attention, last_output
from tokenflock.probing.loading import Loaded, running
from tokenflock.probing.prompts import Prompt


@dataclass(frozen=True)
class Wanted:
    """What to record. `final_norm`: the last layer after the norm that decoders end with, instead
    of the stream before it.
    """

    layers: tuple[int, ...]
    normalise: bool = False
    attention: bool = False
    entropy: bool = False
    sublayers: bool = False
    final_norm: bool = False


@dataclass(frozen=True)
class Recorded:
    """Arrays of one batch; padding is zero. Layer 0 is what goes into the first block; attention
    and the stream after attention belong to the block that ends at their layer, so they are NaN at
    layer 0."""

    x: np.ndarray  # (prompt, layer, token, coord)
    attention: np.ndarray | None = None  # (prompt, layer, head, token, other)
    entropy: np.ndarray | None = None  # (prompt, layer, head, token), in nats
    x_attention: np.ndarray | None = None  # (prompt, layer, token, coord)


def record(loaded: Loaded, prompts: Sequence[Prompt], size: int, wanted: Wanted) -> Recorded:
    """Run a batch, padded to `size` tokens for the result but only to its own longest text for the
    model.
    """
    if hasattr(loaded, "record"):  # a model that was trained here
        return loaded.record(prompts, size, wanted)
    ids, mask = _padded(loaded, prompts)
    with running(loaded, wanted.attention or wanted.entropy) as model:
        split = after_attention(model) if wanted.sublayers else nullcontext([])
        with last_output(model) as last, split as halves:
            told = model(
                input_ids=ids,
                attention_mask=mask,
                output_hidden_states=True,
                output_attentions=wanted.attention or wanted.entropy,
            )
        states = list(told.hidden_states)
        if not wanted.final_norm and last() is not None:
            states[-1] = last()
        here = mask.bool()
        x = _states([states[k] for k in wanted.layers], here, size, wanted.normalise, loaded)
        half = (
            _states(_blocks(halves, wanted.layers), here, size, wanted.normalise, loaded)
            if wanted.sublayers
            else None
        )
        maps = _blocks(told.attentions, wanted.layers) if wanted.attention or wanted.entropy else []
        return Recorded(
            x,
            _attention(maps, here, size) if wanted.attention else None,
            _entropy(maps, here, size) if wanted.entropy else None,
            half,
        )


def _padded(loaded: Loaded, prompts: Sequence[Prompt]) -> tuple[Any, Any]:
    """Ids and mask (prompt, token), padded on the right."""
    longest = max(map(len, prompts))
    fill = getattr(loaded.model.config, "pad_token_id", None)
    ids = torch.full(
        (len(prompts), longest),
        fill if isinstance(fill, int) and fill >= 0 else 0,
        dtype=torch.long,
    )
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.from_numpy(prompt.ids)
        mask[row, : len(prompt)] = 1
    device = next(loaded.model.parameters()).device
    return ids.to(device), mask.to(device)


def _blocks(found: Sequence[Any], layers: tuple[int, ...]) -> list[Any]:
    """What blocks told, by the layer at which they end.

    None for layer 0, at which no block ends.
    """
    return [None if layer == 0 else found[layer - 1] for layer in layers]


def _states(states: list[Any], here: Any, size: int, normalise: bool, loaded: Loaded) -> np.ndarray:
    shape = next(one.shape for one in states if one is not None)
    double = loaded.model.dtype == torch.float64
    out = np.zeros((shape[0], len(states), size, shape[2]), np.float64 if double else np.float32)
    for k, state in enumerate(states):
        if state is None:
            out[:, k] = np.nan
            continue
        values = state if double else state.float()
        if normalise:
            values = values / values.norm(dim=-1, keepdim=True)
        values = values.masked_fill(~here[..., None], 0)
        if not bool(torch.isfinite(values).all()):
            raise SimulationError(
                f"{loaded.name} left the numbers in {loaded.model.dtype}; run it with"
                " dtype='float32'"
            )
        out[:, k, : shape[1]] = values.cpu().numpy()
    return out


def _attention(maps: list[Any], here: Any, size: int) -> np.ndarray:
    shape = next(one.shape for one in maps if one is not None)
    out = np.zeros((shape[0], len(maps), shape[1], size, size), np.float32)
    both = (here[:, :, None] & here[:, None, :])[:, None]
    for k, one in enumerate(maps):
        out[:, k] = np.nan if one is None else 0
        if one is not None:
            out[:, k, :, : shape[2], : shape[3]] = one.masked_fill(~both, 0).float().cpu().numpy()
    return out


def _entropy(maps: list[Any], here: Any, size: int) -> np.ndarray:
    shape = next(one.shape for one in maps if one is not None)
    out = np.full((shape[0], len(maps), shape[1], size), np.nan, np.float32)
    for k, one in enumerate(maps):
        if one is not None:
            rows = torch.special.entr(one.float()).sum(-1).masked_fill(~here[:, None], torch.nan)
            out[:, k, :, : shape[2]] = rows.cpu().numpy()
    return out

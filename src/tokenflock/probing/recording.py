"""One batch of prompts through a torch model: hidden states, attention, the stream between the
sublayers, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from tokenflock.errors import SimulationError, UserError
from tokenflock.probing._needs import torch
from tokenflock.probing.architectures import architecture, known
from tokenflock.probing.hooks import after_attention, last_output
from tokenflock.probing.model import Facts, Prompt, Trace
from tokenflock.probing.options import Recording


def record(
    network: Any, facts: Facts, prompts: Sequence[Prompt], size: int, recording: Recording
) -> Trace:
    """Run a batch, padded to `size` tokens for the result but only to its own longest text for the
    model.
    """
    layers = recording.places(facts.depth)
    ids, mask = _padded(network, prompts)
    with running(network, facts.depth, recording.attends):
        split = _between(network) if recording.sublayers else nullcontext([])
        with last_output(network) as last, split as between:
            told = network(
                input_ids=ids,
                attention_mask=mask,
                output_hidden_states=True,
                output_attentions=recording.attends,
            )
        states = list(told.hidden_states)
        if not recording.final_norm and last() is not None:
            states[-1] = last()
        here = mask.bool()

        def arrays(streams: list[Any]) -> np.ndarray:
            return _states(streams, here, size, recording.normalise, facts.name)

        maps = _at_layers(told.attentions, layers) if recording.attends else []
        return Trace(
            arrays([states[layer] for layer in layers]),
            _attention(maps, here, size) if recording.attention else None,
            _entropy(maps, here, size) if recording.entropy else None,
            arrays(_at_layers(between, layers)) if recording.sublayers else None,
        )


@contextmanager
def running(network: Any, depth: int, attention: bool) -> Iterator[None]:
    """While open, the network makes `depth` passes, and tells its attention if that is wanted.

    As before when it ends.
    """
    config = network.config
    before = (
        config.num_hidden_layers,
        getattr(config, "use_cache", None),
        config._attn_implementation,
    )
    shared = before[0] != depth
    if shared:
        config.num_hidden_layers = depth
    if before[1]:
        config.use_cache = False
    if attention:
        network.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            yield
    finally:
        if shared:
            config.num_hidden_layers = before[0]
        if before[1]:
            config.use_cache = before[1]
        if attention:
            network.set_attn_implementation(before[2])


def _between(network: Any) -> AbstractContextManager[list[Any]]:
    kind = network.config.model_type
    tap = architecture(kind).tap
    if tap is None:
        names = ", ".join(name for name, member in known().items() if member.tap)
        raise UserError(
            f"probe does not know where {kind} ends its attention; sublayers are known for {names}"
        )
    return after_attention(network, tap)


def _padded(network: Any, prompts: Sequence[Prompt]) -> tuple[Any, Any]:
    """Ids and mask (prompt, token), padded on the right."""
    longest = max(map(len, prompts))
    fill = getattr(network.config, "pad_token_id", None)
    ids = torch.full(
        (len(prompts), longest),
        fill if isinstance(fill, int) and fill >= 0 else 0,
        dtype=torch.long,
    )
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.from_numpy(prompt.ids)
        mask[row, : len(prompt)] = 1
    device = next(network.parameters()).device
    return ids.to(device), mask.to(device)


def _at_layers(told: Sequence[Any], layers: tuple[int, ...]) -> list[Any]:
    """What blocks told, by the layer at which they end.

    None for layer 0, at which no block ends.
    """
    return [None if layer == 0 else told[layer - 1] for layer in layers]


def _states(states: list[Any], here: Any, size: int, normalise: bool, name: str) -> np.ndarray:
    sample = next(state for state in states if state is not None)
    (count, tokens, d), double = sample.shape, sample.dtype == torch.float64
    out = np.zeros((count, len(states), size, d), np.float64 if double else np.float32)
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
                f"{name} left the numbers in {sample.dtype}; run it with dtype='float32'"
            )
        out[:, k, :tokens] = values.cpu().numpy()
    return out


def _attention(maps: list[Any], here: Any, size: int) -> np.ndarray:
    count, heads, n, _ = next(rows.shape for rows in maps if rows is not None)
    out = np.zeros((count, len(maps), heads, size, size), np.float32)
    both = (here[:, :, None] & here[:, None, :])[:, None]
    for k, rows in enumerate(maps):
        if rows is None:
            out[:, k] = np.nan
        else:
            out[:, k, :, :n, :n] = rows.masked_fill(~both, 0).float().cpu().numpy()
    return out


def _entropy(maps: list[Any], here: Any, size: int) -> np.ndarray:
    count, heads, n, _ = next(rows.shape for rows in maps if rows is not None)
    out = np.full((count, len(maps), heads, size), np.nan, np.float32)
    for k, rows in enumerate(maps):
        if rows is not None:
            sums = torch.special.entr(rows.float()).sum(-1).masked_fill(~here[:, None], torch.nan)
            out[:, k, :, :n] = sums.cpu().numpy()
    return out

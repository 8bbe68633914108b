"""Where the blocks of a torch model are, and the stream inside and after them, caught while it
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tokenflock.probing._needs import torch
from tokenflock.probing.architectures.architecture import Side, Tap


def blocks(network: Any) -> list[Any]:
    """The layers of a torch model, in order.

    A shared one once. Empty where they cannot be told from its other parts.
    """
    kind = (getattr(network, "_can_record_outputs", None) or {}).get("hidden_states")
    if isinstance(kind, type):
        return [part for part in network.modules() if isinstance(part, kind)]
    lists = [part for part in network.modules() if isinstance(part, torch.nn.ModuleList)]
    return next((list(part) for part in lists if len(part) == network.config.num_hidden_layers), [])


@contextmanager
def last_output(network: Any) -> Iterator[Callable[[], Any]]:
    """While open, keeps what came out of the last block: the stream before any final norm of the
    model.
    """
    kept: list[Any] = [None]

    def keep(_: Any, __: Any, output: Any) -> None:
        kept[0] = _tensor(output)

    parts = blocks(network)
    hooks = [parts[-1].register_forward_hook(keep)] if parts else []
    try:
        yield lambda: kept[0]
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def after_attention(network: Any, tap: Tap) -> Iterator[list[Any]]:
    """While open, collects the stream after the attention part of every block, in the order in
    which they run.
    """
    streams: list[Any] = []
    entries: list[Any] = []
    hooks = []
    for block in blocks(network):
        hooks.append(
            block.register_forward_pre_hook(
                lambda _, args, named: entries.append(_input(args, named)), with_kwargs=True
            )
        )
        hooks.append(_hook(block.get_submodule(tap.part), tap.side, streams, entries))
    try:
        yield streams
    finally:
        for hook in hooks:
            hook.remove()


def _hook(part: Any, side: Side, streams: list[Any], entries: list[Any]) -> Any:
    if side == "input":
        return part.register_forward_pre_hook(
            lambda _, args, named: streams.append(_input(args, named)), with_kwargs=True
        )
    if side == "added":
        return part.register_forward_hook(
            lambda _, __, output: streams.append(_tensor(output) + entries[-1])
        )
    return part.register_forward_hook(lambda _, __, output: streams.append(_tensor(output)))


def _input(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return args[0] if args else named["hidden_states"]


def _tensor(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output

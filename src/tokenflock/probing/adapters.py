"""What differs between architectures: where their blocks are, and where the stream is after
attention alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tokenflock.errors import UserError
from tokenflock.probing._needs import torch


@dataclass(frozen=True)
class Tap:
    """The place in a block at which the stream after attention can be read: what goes into a part,
    what comes out of it, or what comes out of it added to what goes into the block."""

    part: str
    side: Literal["input", "output", "added"] = "output"


_POST = Tap("attention")  # layer norm after the sum: the attention part ends with it
_PRE = Tap("post_attention_layernorm", "input")
AFTER_ATTENTION = {
    "albert": _POST,
    "bert": _POST,
    "roberta": _POST,
    "xlm-roberta": _POST,
    "electra": _POST,
    "camembert": _POST,
    "distilbert": Tap("sa_layer_norm"),
    "gpt2": Tap("ln_2", "input"),
    "gpt_neox": Tap("post_attention_dropout", "added"),
    "llama": _PRE,
    "mistral": _PRE,
    "qwen2": _PRE,
    "qwen3": _PRE,
    "gemma": _PRE,
    "gemma2": Tap("pre_feedforward_layernorm", "input"),
    "gemma3_text": Tap("pre_feedforward_layernorm", "input"),
}


def blocks(model: Any) -> list[Any]:
    """The layers of a model, in order.

    A shared one once. Empty where they cannot be told from its other parts.
    """
    kind = (getattr(model, "_can_record_outputs", None) or {}).get("hidden_states")
    if isinstance(kind, type):
        return [part for part in model.modules() if isinstance(part, kind)]
    lists = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    return next((list(part) for part in lists if len(part) == model.config.num_hidden_layers), [])


@contextmanager
def last_output(model: Any) -> Iterator[Callable[[], Any]]:
    """While open, keeps what came out of the last block: the stream before any final norm of the
    model.
    """
    found: list[Any] = [None]

    def keep(_, __, output):
        found[0] = _tensor(output)

    parts = blocks(model)
    hooks = [parts[-1].register_forward_hook(keep)] if parts else []
    try:
        yield lambda: found[0]
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def after_attention(model: Any) -> Iterator[list[Any]]:
    """While open, collects the stream after the attention part of every block, in the order in
    which they run.
    """
    kind = model.config.model_type
    if kind not in AFTER_ATTENTION:
        raise UserError(
            f"probe does not know where {kind} ends its attention; sublayers are known for"
            f" {', '.join(AFTER_ATTENTION)}"
        )
    tap, found, entry = AFTER_ATTENTION[kind], [], []
    hooks = []
    for block in blocks(model):
        hooks.append(
            block.register_forward_pre_hook(
                lambda _, args, named: entry.append(_input(args, named)), with_kwargs=True
            )
        )
        hooks += [_hook(block.get_submodule(tap.part), tap.side, found, entry)]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _hook(part: Any, side: str, found: list[Any], entry: list[Any]) -> Any:
    if side == "input":
        return part.register_forward_pre_hook(
            lambda _, args, named: found.append(_input(args, named)), with_kwargs=True
        )
    if side == "added":
        return part.register_forward_hook(
            lambda _, __, output: found.append(_tensor(output) + entry[-1])
        )
    return part.register_forward_hook(lambda _, __, output: found.append(_tensor(output)))


def _input(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return args[0] if args else named["hidden_states"]


def _tensor(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output

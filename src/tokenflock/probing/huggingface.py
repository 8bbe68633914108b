"""Models of transformers, from a folder, the cache, the hub, or loaded already, behind `Model`."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tokenflock.dynamics.block import Block
from tokenflock.errors import UserError, require, require_whole
from tokenflock.probing import folders, weights
from tokenflock.probing._needs import torch, transformers
from tokenflock.probing.architectures import architecture, known
from tokenflock.probing.blocks import KNOWN, TrainedLayer
from tokenflock.probing.fetching import fetched, line, quiet
from tokenflock.probing.hooks import blocks
from tokenflock.probing.model import Facts, Prompt, Trace
from tokenflock.probing.options import Recording, Variant
from tokenflock.probing.recording import record
from tokenflock.probing.texts import Text
from tokenflock.probing.tokenizer_file import harmless

WITHOUT = 'pass ready token ids: a JSON file of items {"text", "ids"}'
DTYPES = ("float32", "float64", "bfloat16", "float16")
Layer = TypeVar("Layer", TrainedLayer, Block)


@dataclass(frozen=True)
class HuggingFaceModel:
    """A network of transformers without its head, ready to run, and where it came from."""

    network: Any
    facts: Facts

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer that belongs to the model."""
        return _tokenizer(self.facts, self.network.config.vocab_size)

    @cached_property
    def _digest(self) -> str:
        total = hashlib.sha256()
        for name, tensor in sorted(self.network.state_dict().items()):
            total.update(name.encode())
            total.update(
                tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
        return total.hexdigest()

    def digest(self) -> str:
        """sha256 of all weights, by name."""
        return self._digest

    def encode(self, text: Text, length: int) -> Prompt:
        """The first `length` tokens of a text as the model reads it, special tokens included."""
        if text.ids is not None:
            return _ready(text, length, self.network.config.vocab_size)
        try:
            with quiet():
                encoded = self.tokenizer(
                    text.text, truncation=True, max_length=length, return_special_tokens_mask=True
                )
        except Exception as error:  # of many kinds, a panic too
            raise UserError(
                f"the tokenizer of {self.facts.name} cannot encode {text.text!r:.60}:"
                f" {line(error)}; mend its tokenizer.json, or {WITHOUT}"
            ) from None
        ids = np.asarray(encoded["input_ids"], dtype=np.int64)
        _require_ids(
            f"ids of the tokenizer of {self.facts.name}", ids, self.network.config.vocab_size
        )
        require(
            len(ids) <= length,
            f"the tokenizer of {self.facts.name}",
            f"one that cuts a text at {length:,} tokens",
            f"{len(ids):,} tokens: it adds special ones; {WITHOUT}",
        )
        special = np.asarray(encoded["special_tokens_mask"], dtype=bool)
        words = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        return Prompt(text.text, ids, special, tuple(words))

    def record(self, prompts: Sequence[Prompt], size: int, recording: Recording) -> Trace:
        """Run a batch, padded to `size` tokens for the result but only to its own longest text for
        the model.
        """
        return record(self.network, self.facts, prompts, size, recording)

    def blocks(self) -> list[TrainedLayer]:
        """The layers as matrices, in order; for a model that shares its layer, that one."""
        config = self.network.config
        layer = architecture(config.model_type).block
        if layer is None:
            names = ", ".join(name for name, member in known().items() if member.block)
            raise UserError(
                f"the matrices of {config.model_type} are not known to tokenflock (positions enter"
                f" its attention, or it has another feed-forward part); known are {names}"
            )
        layers = self._in_order(layer)
        if layers[0].activation not in KNOWN:
            raise UserError(
                f"the activation {layers[0].activation!r} is not known to tokenflock; known are"
                f" {', '.join(KNOWN)}"
            )
        return layers

    def laws(self) -> list[Block]:
        """The layers as laws of motion, in order; for a model that shares its layer, that one."""
        config = self.network.config
        law = architecture(config.model_type).law
        if law is None:
            return [layer.as_block() for layer in self.blocks()]
        return self._in_order(law)

    def _in_order(self, read: Callable[[Any, Any], Layer]) -> list[Layer]:
        """Read each layer from its torch module, in the order in which they run; a layer that all
        passes share once.
        """
        config = self.network.config
        layers = [read(part, config) for part in blocks(self.network)]
        if len(layers) == 1:
            return layers
        # ALBERT has several groups, each of consecutive layers; rounded as transformers does it
        depth = config.num_hidden_layers
        return [layers[int(k / (depth / len(layers)))] for k in range(depth)]


def load(model: Any, variant: Variant = Variant()) -> HuggingFaceModel:
    """A model from a folder, a name on the hub, or one of transformers that is loaded already."""
    dtype, device = variant.dtype, variant.device
    require(dtype is None or dtype in DTYPES, "dtype", " or ".join(DTYPES), repr(dtype))
    if isinstance(model, (str, os.PathLike)):
        source = weights.source_of(model)
        name = weights.name_of(Path(source)) if Path(source).is_dir() else source
        network = (
            weights.untrained(source, variant.seed)
            if variant.untrained
            else weights.trained(source)
        )
        dtype, device = dtype or "float32", device or default_device()
    else:
        require(
            hasattr(model, "config") and hasattr(model, "base_model"),
            "model",
            "a folder, a name or a transformers model",
            type(model).__name__,
        )
        source, network = getattr(model, "name_or_path", "") or None, model.base_model
        name = weights.name_of(Path(source)) if source else type(model).__name__
        if variant.untrained:
            network = weights.fresh(type(network), network.config, variant.seed)
    _check_kind(network.config)
    network = _with_heads(network, variant.heads)
    depth = _depth(network.config, variant.depth)
    network = _placed(network, dtype, device)
    facts = _facts(network, name + _suffix(variant), source, depth)
    return HuggingFaceModel(network, replace(facts, variant=variant))


def default_device() -> str:
    """A GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _facts(network: Any, name: str, source: str | None, depth: int) -> Facts:
    config = network.config
    positions = getattr(config, "max_position_embeddings", None) or 10**9
    return Facts(
        name=name,
        source=source,
        architecture=config.model_type,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        depth=depth,
        own_depth=config.num_hidden_layers,
        room=positions - architecture(config.model_type).reserved,
        dtype=str(network.dtype).removeprefix("torch."),
        revision=getattr(config, "_commit_hash", None) or "",
    )


def _placed(network: Any, dtype: str | None, device: str | None) -> Any:
    try:
        return network.to(device=device, dtype=getattr(torch, dtype) if dtype else None).eval()
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"the model cannot be put on device {device!r}: {str(error).splitlines()[0]}"
        ) from None


def _check_kind(config: Any) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise UserError(
            f"{config.model_type} has an encoder and a decoder, two streams of tokens; probe takes"
            " models with one of them"
        )
    if not hasattr(config, "num_hidden_layers") or not hasattr(config, "hidden_size"):
        raise UserError(
            f"{config.model_type} is not a Transformer on tokens that probe knows: its config has"
            " no number of layers"
        )
    require_whole("num_hidden_layers of the model", config.num_hidden_layers, 1)
    inner = getattr(config, "inner_group_num", 1)  # ALBERT would tell so many states per layer
    require(inner == 1, "inner_group_num of the model", "1", inner)


def _with_heads(network: Any, heads: int | None) -> Any:
    """The same weights cut into another number of heads."""
    config = network.config
    if heads is None or heads == config.num_attention_heads:
        return network
    kind, d = config.model_type, config.hidden_size
    require(
        architecture(kind).plain_heads,
        "heads",
        f"left out for {kind} (its heads are no plain cut of one matrix)",
        heads,
    )
    require(heads >= 1 and d % heads == 0, "heads", f"a divisor of the width {d}", heads)
    changed = copy.deepcopy(config)
    changed.num_attention_heads = heads
    again = weights.fresh(type(network), changed, 0)
    again.load_state_dict(network.state_dict(), strict=False)
    return again


def _depth(config: Any, depth: int | None) -> int:
    """How many passes to run; other than the config's only where all layers are one."""
    own = config.num_hidden_layers
    if depth is None or depth == own:
        return own
    require(isinstance(depth, int) and depth >= 1, "depth", "1 or more", depth)
    if not architecture(config.model_type).shared(config):
        raise UserError(
            f"depth = {depth}: the {own} layers of this {config.model_type} have weights of"
            " their own, so there is no layer to pass again; leave depth out (only weight-shared"
            " models such as ALBERT run past their depth)"
        )
    return depth


def _suffix(variant: Variant) -> str:
    parts = [f"untrained, seed {variant.seed}"] if variant.untrained else []
    parts += [f"{variant.heads} head{'s' if variant.heads > 1 else ''}"] if variant.heads else []
    return f" ({', '.join(parts)})" if parts else ""


def _tokenizer(facts: Facts, size: int) -> Any:
    """The tokenizer, or an error: transformers makes an empty one up where a folder has none."""
    source = facts.source
    if source is None:
        raise UserError(f"{facts.name} was given as a model without a tokenizer; {WITHOUT}")
    if Path(source).is_dir():
        folders.check(Path(source))
        for path in Path(source).glob("*tokenizer*.json"):  # of several versions
            harmless(path)
    try:
        tokenizer = fetched(
            source, lambda **how: transformers.AutoTokenizer.from_pretrained(source, **how)
        )
    except UserError as error:
        raise UserError(
            f"{facts.name} has no tokenizer that can be loaded; {WITHOUT} ({error})"
        ) from None
    if len(tokenizer) < size / 2:
        raise UserError(
            f"{facts.name} has no tokenizer of its own ({len(tokenizer)} tokens where the model has"
            f" {size}); {WITHOUT}"
        )
    return tokenizer


def _ready(text: Text, length: int, size: int) -> Prompt:
    """Ids that were given. Special are those that the text names, for without a tokenizer nobody
    else knows.
    """
    ids = np.asarray(text.ids, dtype=np.int64)
    _require_ids("ids", ids, size)
    special = np.isin(np.arange(len(ids)), text.special)
    return Prompt(text.text, ids[:length], special[:length], tuple(map(str, ids[:length])))


def _require_ids(what: str, ids: np.ndarray, size: int) -> None:
    """Raise unless there are token ids, all of them below a size."""
    fits = len(ids) > 0 and bool(((ids >= 0) & (ids < size)).all())
    got = f"{ids.min()} to {ids.max()}" if len(ids) else "none"
    require(fits, what, f"of tokens from 0 to {size - 1}", got)

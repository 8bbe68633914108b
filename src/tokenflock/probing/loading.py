"""A trained model from a folder, the cache or the hub: all of it or an error, no substitute."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from tokenflock.errors import UserError, require
from tokenflock.probing._needs import torch, transformers
from tokenflock.probing.fetching import fetched, quiet

DTYPES = ("float32", "float64", "bfloat16", "float16")
ELSEWHERE = {
    "tokenflock-gpt": "tokenflock.gpt.watching"
}  # kinds of models with a `loaded` of their own, found by name
_REGROUPED = (
    "albert",
    "bert",
    "roberta",
    "xlm-roberta",
    "electra",
    "distilbert",
    "gpt2",
)  # heads are a cut of one matrix
_HARMLESS = re.compile(r"pooler|position_ids")  # weights that no hidden state depends on


@dataclass(frozen=True)
class Variant:
    """How a model departs from its config: passes of a shared layer, number of heads, fresh weights
    from a seed.
    """

    depth: int | None = None
    heads: int | None = None
    untrained: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Loaded:
    """A model without its head, ready to run, and where it came from."""

    model: Any
    name: str
    depth: int
    source: str | None  # what its tokenizer is loaded from

    @cached_property
    def digest(self) -> str:
        """sha256 of all weights, by name."""
        whole = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            whole.update(name.encode())
            whole.update(
                tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
        return whole.hexdigest()

    @property
    def revision(self) -> str:
        """The commit on the hub, where it is known."""
        return getattr(self.model.config, "_commit_hash", None) or ""

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer that belongs to the model."""
        return _tokenizer(self)

    @property
    def room(self) -> int:
        """The most tokens that the model takes."""
        config = self.model.config
        most = getattr(config, "max_position_embeddings", None) or 10**9
        return (
            most - 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else most
        )  # two places are padding's


def load(
    model: Any, variant: Variant = Variant(), dtype: str | None = None, device: str | None = None
) -> Loaded:
    """A model from a folder, a name on the hub, or one that is loaded already."""
    home = _elsewhere(model)
    if home is not None:
        return home.loaded(model, variant, dtype)
    require(dtype is None or dtype in DTYPES, "dtype", " or ".join(DTYPES), repr(dtype))
    if isinstance(model, (str, os.PathLike)):
        source = _source(model)
        name = _name(Path(source)) if Path(source).is_dir() else source
        built = _from_config(source, variant) if variant.untrained else _from_weights(source)
        dtype, device = dtype or "float32", device or default_device()
    else:
        require(
            hasattr(model, "config") and hasattr(model, "base_model"),
            "model",
            "a folder, a name or a transformers model",
            type(model).__name__,
        )
        source, built = getattr(model, "name_or_path", "") or None, model.base_model
        name = _name(Path(source)) if source else type(model).__name__
        built = _fresh(type(built), built.config, variant.seed) if variant.untrained else built
    _check_kind(built.config)
    built = _with_heads(built, variant.heads)
    depth = _depth(built, variant.depth)
    try:
        built = built.to(device=device, dtype=getattr(torch, dtype) if dtype else None).eval()
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"the model cannot be put on device {device!r}: {str(error).splitlines()[0]}"
        ) from None
    return Loaded(built, name + _suffix(variant), depth, source)


def _elsewhere(model: Any) -> Any:
    """The module that loads the models of a folder by itself, where its config names a kind that is
    not of transformers.
    """
    if not isinstance(model, (str, os.PathLike)):
        return None
    try:
        kind = json.loads((Path(model) / "config.json").read_text(encoding="utf-8")).get(
            "model_type"
        )
    except (OSError, ValueError, AttributeError):
        return None
    return import_module(ELSEWHERE[kind]) if kind in ELSEWHERE else None


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def running(loaded: Loaded, attention: bool) -> Iterator[Any]:
    """The model with its number of passes, able to tell its attention if that is wanted.

    As before when it ends.
    """
    model, config = loaded.model, loaded.model.config
    before = (
        config.num_hidden_layers,
        getattr(config, "use_cache", None),
        config._attn_implementation,
    )
    shared = before[0] != loaded.depth
    if shared:
        config.num_hidden_layers = loaded.depth
    if before[1]:
        config.use_cache = False
    if attention:
        model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            yield model
    finally:
        if shared:
            config.num_hidden_layers = before[0]
        if before[1]:
            config.use_cache = before[1]
        if attention:
            model.set_attn_implementation(before[2])


def _source(model: str | os.PathLike[str]) -> str:
    """A folder that has a config, or a name of the hub."""
    path = Path(model)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(
                f"{path} has no config.json, so it is no folder of a model; give the one that holds"
                " config.json and the weights"
            )
        return str(path)
    if path.is_file():
        raise UserError(
            f"{path} is a file; give the folder that holds it, with config.json beside the weights"
        )
    if isinstance(model, str) and re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", model):
        return model
    raise UserError(
        f"there is no folder {model}; give the folder of a model, or its name on the hub such as"
        " albert/albert-xlarge-v2"
    )


def _name(folder: Path) -> str:
    """What to call the model of a folder: the folder's name, with the one above it where that says
    nothing.
    """
    path = folder.resolve() if folder.is_dir() else folder
    vague = path.name in ("model", "checkpoint", "weights") or re.fullmatch(
        r"[0-9a-f]{40}", path.name
    )
    return f"{path.parent.name}/{path.name}" if vague else path.name


def _from_weights(source: str) -> Any:
    if Path(source).is_dir() and not _weights(Path(source)):
        raise UserError(
            f"{source} has a config.json but no weights (model.safetensors or pytorch_model.bin);"
            " bring them, or ask for fresh ones with untrained"
        )
    options = {
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,
    }  # it is we who refuse them, by the report
    model, report = fetched(
        source, lambda **how: transformers.AutoModel.from_pretrained(source, **options, **how)
    )
    missing = sorted(key for key in report["missing_keys"] if not _HARMLESS.search(key))
    if missing or report["mismatched_keys"]:
        raise UserError(
            f"the weights of {source} are not those of its config: {len(missing)} missing (e.g."
            f" {', '.join(missing[:2])}), {len(report['mismatched_keys'])} of another shape;"
            " nothing is filled in"
        )
    return model.base_model


def _from_config(source: str, variant: Variant) -> Any:
    config = fetched(source, lambda **how: transformers.AutoConfig.from_pretrained(source, **how))
    return _fresh(transformers.AutoModel.from_config, config, variant.seed).base_model


def _weights(folder: Path) -> list[Path]:
    names = ("*.safetensors", "pytorch_model*.bin", "*.safetensors.index.json")
    return [path for name in names for path in folder.glob(name)]


def _fresh(make: Callable[[Any], Any], config: Any, seed: int) -> Any:
    """A model with the weights of its initialisation, the same for the same seed."""
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(seed)
        return make(copy.deepcopy(config))


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


def _with_heads(model: Any, heads: int | None) -> Any:
    """The same weights cut into another number of heads."""
    config = model.config
    if heads is None or heads == config.num_attention_heads:
        return model
    kind, d = config.model_type, config.hidden_size
    require(
        kind in _REGROUPED,
        "heads",
        f"left out for {kind} (its heads are no plain cut of one matrix)",
        heads,
    )
    require(heads >= 1 and d % heads == 0, "heads", f"a divisor of the width {d}", heads)
    changed = copy.deepcopy(config)
    changed.num_attention_heads = heads
    again = _fresh(type(model), changed, 0)
    again.load_state_dict(model.state_dict(), strict=False)
    return again


def _depth(model: Any, depth: int | None) -> int:
    """How many passes to run; other than the config's only where all layers are one."""
    own = model.config.num_hidden_layers
    if depth is None or depth == own:
        return own
    require(isinstance(depth, int) and depth >= 1, "depth", "1 or more", depth)
    if model.config.model_type != "albert" or model.config.num_hidden_groups != 1:
        raise UserError(
            f"depth = {depth}: the {own} layers of this {model.config.model_type} have weights of"
            " their own, so there is no layer to pass again; leave depth out (only weight-shared"
            " models such as ALBERT run past their depth)"
        )
    return depth


def _suffix(variant: Variant) -> str:
    parts = [f"untrained, seed {variant.seed}"] if variant.untrained else []
    parts += [f"{variant.heads} head{'s' if variant.heads > 1 else ''}"] if variant.heads else []
    return f" ({', '.join(parts)})" if parts else ""


def _tokenizer(loaded: Loaded) -> Any:
    """The tokenizer, or an error: transformers makes an empty one up where a folder has none."""
    without = 'pass ready token ids: a JSON file of items {"text", "ids"}'
    if loaded.source is None:
        raise UserError(f"{loaded.name} was given as a model without a tokenizer; {without}")
    try:
        found = fetched(
            loaded.source,
            lambda **how: transformers.AutoTokenizer.from_pretrained(loaded.source, **how),
        )
    except UserError as error:
        raise UserError(
            f"{loaded.name} has no tokenizer that can be loaded; {without} ({error})"
        ) from None
    size = loaded.model.config.vocab_size
    if len(found) < size / 2:
        raise UserError(
            f"{loaded.name} has no tokenizer of its own ({len(found)} tokens where the model has"
            f" {size}); {without}"
        )
    return found

"""A network of transformers from a folder, the cache or the hub: all of it or an error, no
substitute.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.probing._needs import torch, transformers
from tokenflock.probing.fetching import fetched, quiet
from tokenflock.probing.folders import check, weight_files
from tokenflock.probing.sizes import no_larger, numbers, plain_sizes

_HARMLESS = re.compile(r"pooler|position_ids")  # weights that no hidden state depends on


def source_of(model: str | os.PathLike[str]) -> str:
    """A folder that has a config, or a name of the hub."""
    path = Path(model)
    if path.is_dir():
        check(path)
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


def name_of(folder: Path) -> str:
    """What to call the model of a folder: the folder's name, with the one above it where that says
    nothing.
    """
    path = folder.resolve() if folder.is_dir() else folder
    vague = path.name in ("model", "checkpoint", "weights") or re.fullmatch(
        r"[0-9a-f]{40}", path.name
    )
    return f"{path.parent.name}/{path.name}" if vague else path.name


def trained(source: str) -> Any:
    """The network with the weights that lie beside its config, every one of them."""
    if Path(source).is_dir() and not weight_files(Path(source)):
        raise UserError(
            f"{source} has a config.json but no weights (model.safetensors or pytorch_model.bin);"
            " bring them, or ask for fresh ones with untrained"
        )
    config = _config(source)
    if Path(source).is_dir():
        no_larger(config, Path(source))
    # it is we who refuse them, by the report
    options = {"output_loading_info": True, "ignore_mismatched_sizes": True, "config": config}
    network, report = fetched(
        source, lambda **how: transformers.AutoModel.from_pretrained(source, **options, **how)
    )
    missing = sorted(key for key in report["missing_keys"] if not _HARMLESS.search(key))
    if missing or report["mismatched_keys"]:
        raise UserError(
            f"the weights of {source} are not those of its config: {len(missing)} missing (e.g."
            f" {', '.join(missing[:2])}), {len(report['mismatched_keys'])} of another shape;"
            " nothing is filled in"
        )
    _emptied(network, report["missing_keys"])
    return network.base_model


def _emptied(network: Any, names: Collection[str]) -> None:
    """Zeros in place of the random numbers of weights that no file has: runs are to be equal, and
    so are the digests of their weights.
    """
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if name in names:
                weights.zero_()


def untrained(source: str, seed: int) -> Any:
    """The network that a config describes, with fresh weights."""
    config = _config(source)
    require_memory(4.0 * numbers(config), f"{source} with fresh weights", "take a smaller model")
    return fresh(transformers.AutoModel.from_config, config, seed).base_model


def _config(source: str) -> Any:
    """The config, with the implementations of attention that transformers takes by itself: those
    that a file names may be code to fetch.
    """
    if Path(source).is_dir():
        plain_sizes(Path(source))
    config = fetched(source, lambda **how: transformers.AutoConfig.from_pretrained(source, **how))
    config._attn_implementation = config._experts_implementation = None
    return config


def fresh(make: Callable[[Any], Any], config: Any, seed: int) -> Any:
    """A network with the weights of its initialisation, the same for the same seed."""
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(seed)
        return make(copy.deepcopy(config))

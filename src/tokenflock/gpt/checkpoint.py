"""A model on disk: a folder with config.json and model.safetensors, each written whole or not
at all.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as packed

from tokenflock.errors import UserError
from tokenflock.files import whole
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import Schedule, Shape
from tokenflock.gpt.text import Alphabet, from_json

KIND = "tokenflock-gpt"  # model_type in config.json
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Config:
    """Everything but the weights."""

    shape: Shape
    schedule: Schedule
    alphabet: Alphabet
    digest: str = ""  # sha256 of the text

    def as_json(self) -> dict[str, Any]:
        """What config.json holds."""
        return {
            "model_type": KIND,
            "shape": asdict(self.shape),
            "schedule": asdict(self.schedule),
            "alphabet": self.alphabet.as_json(),
            "text_sha256": self.digest,
        }

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Config:
        """The same from what config.json holds."""
        return cls(
            Shape(**described["shape"]),
            Schedule(**described["schedule"]),
            from_json(described["alphabet"]),
            described["text_sha256"],
        )


@dataclass(frozen=True)
class Checkpoint:
    """A model at a step of its training. `optimiser` is None where only the model was read."""

    config: Config
    model: LanguageModel
    step: int
    optimiser: Any = None
    # (step, train loss, val loss)
    history: tuple[tuple[int, float, float], ...] = field(default=(), repr=False)


def is_ours(folder: Any) -> bool:
    """Whether a folder holds a model that was trained here."""
    if not isinstance(folder, (str, os.PathLike)):
        return False
    try:
        return (
            json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")).get("model_type")
            == KIND
        )
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds a model which was not trained here."""
    if is_ours(folder):
        return
    for name in ("config.json", WEIGHTS):
        if (folder / name).exists():
            raise UserError(
                f"{folder / name} belongs to another model; choose another folder with --out"
            )


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint: one file holds model, optimiser and step, so that they always belong
    together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = named(checkpoint.model, "model") | named(checkpoint.optimiser, "optimiser")
    metadata = {
        "step": str(checkpoint.step),
        "history": json.dumps(checkpoint.history),
        "format": "tokenflock",
    }
    with whole(folder / "config.json") as part:
        part.write_text(json.dumps(checkpoint.config.as_json(), indent=1) + "\n", encoding="utf-8")
    with whole(folder / WEIGHTS) as part:
        part.write_bytes(_ordered(packed(tensors, metadata)))


def _ordered(data: bytes) -> bytes:
    """The same file with its notes in alphabetical order: the library below writes them in an
    order that changes from process to process, and equal runs are to end in equal files.
    """
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # the tensors begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def load(folder: str | os.PathLike[str], optimiser: Any = None) -> Checkpoint:
    """Read a checkpoint back.

    `optimiser` maps a model to a state of the shape that is to be read.
    """
    folder = Path(folder)
    if not is_ours(folder):
        raise UserError(
            f"{folder} holds no checkpoint; make one with: tokenflock gpt train --out {folder}"
        )
    try:
        config = Config.from_json(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        _fits(config.shape, (folder / WEIGHTS).stat().st_size)
        with safe_open(folder / WEIGHTS, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata()
        model = filled(fresh(config.shape), tensors, "model")
        state = None if optimiser is None else filled(optimiser(model), tensors, "optimiser")
        rows = json.loads(metadata["history"])
        history = tuple((int(step), float(train), float(val)) for step, train, val in rows)
        return Checkpoint(config, model, int(metadata["step"]), state, history)
    except Exception as error:  # whatever the libraries below say of a damaged file
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the checkpoint in {folder} cannot be read ({reason}); train again with another --out"
        ) from None


def _fits(shape: Shape, size: int) -> None:
    """Refuse a shape whose model is larger than the file, before any of it is made."""
    small = shape.depth * shape.width <= size and shape.vocab <= size and shape.context <= size
    if small:
        skeleton = eqx.filter_eval_shape(build, shape, jax.random.key(0))
        leaves = jax.tree.leaves(eqx.filter(skeleton, lambda leaf: hasattr(leaf, "shape")))
        small = sum(math.prod(leaf.shape) for leaf in leaves) <= size
    if not small:
        raise ValueError("its config tells of a larger model than its weights are")


def fresh(shape: Shape, seed: int = 0) -> LanguageModel:
    """A model with the weights of its initialisation, the same for the same seed."""
    return eqx.filter_jit(build)(shape, jax.random.key(seed))


def named(tree: Any, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a tree by their path, e.g. `model.blocks.0.attention.qkv`."""
    leaves = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))[0]
    return {prefix + _path(path): np.asarray(leaf) for path, leaf in leaves}


def filled(tree: Any, tensors: Mapping[str, np.ndarray], prefix: str) -> Any:
    """A tree with its arrays taken from `tensors`, all of them."""

    def leaf(path, value):
        if not eqx.is_array(value):
            return value
        tensor = tensors[prefix + _path(path)]
        if tensor.shape != value.shape:
            raise KeyError(f"{prefix}{_path(path)} has shape {tensor.shape}, wanted {value.shape}")
        return jax.numpy.asarray(tensor, value.dtype)

    return jax.tree_util.tree_map_with_path(leaf, tree)


def _path(path: tuple[Any, ...]) -> str:
    return "".join(
        "." + str(getattr(key, "name", getattr(key, "idx", getattr(key, "key", key))))
        for key in path
    )

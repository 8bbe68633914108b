"""A model on disk: a folder with config.json and model.safetensors, each written whole or not
at all.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as packed

from tokenflock.errors import UserError, require, require_whole
from tokenflock.files import parsed_json, received_json, whole
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import Schedule, Shape, told
from tokenflock.gpt.text import Alphabet, from_json
from tokenflock.sweeps.own import inside

KIND = "tokenflock-gpt"  # model_type in config.json
WEIGHTS = "model.safetensors"
WRITTEN = ("config.json", WEIGHTS, "prompts.json", "watch.nc")  # all that training writes
MOST = 2**26  # bytes of a config.json that is read


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
            told(Shape, described["shape"]),
            told(Schedule, described["schedule"]),
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
        return _described(Path(folder)) is not None
    except UserError:
        return False


def _described(folder: Path) -> dict[str, Any] | None:
    """What config.json of a model says that was trained here; None where it is none."""
    for name in WRITTEN:
        inside(folder, name)
    try:
        described = received_json(folder / "config.json", MOST)
    except UserError:  # a pipe, a device, too large a file
        raise
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(described, dict) and described.get("model_type") == KIND
    return described if ours else None


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds a model which was not trained here, or a file of another work
    that has the name of one which training writes.
    """
    if is_ours(folder):
        return
    for name in WRITTEN:
        if os.path.lexists(folder / name):
            raise UserError(
                f"{folder / name} belongs to another model, or to another work; choose another"
                " folder with --out"
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
    described = _described(folder)
    if described is None:
        raise UserError(
            f"{folder} holds no checkpoint; make one with: tokenflock gpt train --out {folder}"
        )
    try:
        config = Config.from_json(described)
        skeleton, tensors, notes = _read(folder / WEIGHTS, config.shape, optimiser is not None)
        model = filled(skeleton, tensors, "model")
        state = None if optimiser is None else filled(optimiser(model), tensors, "optimiser")
        _one_token_each(config)
        rows = parsed_json(notes["history"].encode(), folder / WEIGHTS)
        history = tuple((int(step), float(train), float(val)) for step, train, val in rows)
        checkpoint = Checkpoint(config, model, int(notes["step"]), state, history)
        _check_history(checkpoint)
        return checkpoint
    except Exception as error:  # whatever the libraries below say of a damaged file
        raise UserError(
            f"the checkpoint in {folder} cannot be read ({_reason(error)}); train again with"
            " another --out"
        ) from None


def _reason(error: Exception) -> str:
    words = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(words.split())[:300]


def _check_history(checkpoint: Checkpoint) -> None:
    """Raise if the step or the losses of a checkpoint cannot be those of a training."""
    step, history = checkpoint.step, checkpoint.history
    require_whole("step", step, 0, checkpoint.config.schedule.steps)
    told = [row[0] for row in history]
    rising = all(before < after for before, after in pairwise([0, *told]))
    require(rising, "history", "losses at increasing steps from 1 on", f"{told!r:.80}")
    last = told[-1] if told else 0
    require(last == step, "history", f"losses up to step {step}", f"some up to step {last}")
    for row in history:
        finite = all(map(math.isfinite, row[1:]))
        require(finite, "history", "finite losses", f"{row[1:]} at step {row[0]}")


def _one_token_each(config: Config) -> None:
    """Refuse an alphabet that is not as large as the vocabulary of the model."""
    size, vocab = config.alphabet.size, config.shape.vocab
    if size != vocab:
        raise ValueError(f"its alphabet has {size:,} tokens, its shape a vocab of {vocab:,}")


def _read(
    path: Path, shape: Shape, everything: bool
) -> tuple[Any, dict[str, np.ndarray], dict[str, str]]:
    """A model without numbers, the tensors of a file (with or without those of the optimiser), and
    the notes beside them.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    with safe_open(path, framework="numpy") as file:
        names = list(file.keys())
        names = [name for name in names if everything or name.startswith("model.")]
        skeleton = _fitting(shape, path.stat().st_size, len(names))
        return skeleton, {name: file.get_tensor(name) for name in names}, file.metadata() or {}


def _fitting(shape: Shape, size: int, tensors: int) -> Any:
    """A model of a shape without numbers; an error where it is larger than its file of so many
    bytes and tensors, before any of it is made.
    """
    layers = 1 if shape.shared and shape.rung == "gpt" else shape.layers
    parts = layers * (1 if shape.rung in ("gpt", "head") else shape.heads)  # each has a tensor
    if parts <= tensors and max(shape.width, shape.vocab) <= size:
        skeleton = eqx.filter_eval_shape(build, shape, jax.random.key(0))
        leaves = jax.tree.leaves(eqx.filter(skeleton, lambda leaf: hasattr(leaf, "shape")))
        if sum(math.prod(leaf.shape) for leaf in leaves) <= size:
            return skeleton
    raise ValueError("its config tells of a larger model than its weights are")


def fresh(shape: Shape, seed: int = 0) -> LanguageModel:
    """A model with the weights of its initialisation, the same for the same seed."""
    return eqx.filter_jit(build)(shape, jax.random.key(seed))


def named(tree: Any, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a tree by their path, e.g. `model.blocks.0.attention.qkv`."""
    leaves = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_array))[0]
    return {prefix + _path(path): np.asarray(leaf) for path, leaf in leaves}


def filled(tree: Any, tensors: Mapping[str, np.ndarray], prefix: str) -> Any:
    """A tree with its arrays, or what stands for them, taken from `tensors`, all of them."""

    def leaf(path, value):
        if not hasattr(value, "dtype"):
            return value
        name = prefix + _path(path)
        tensor = tensors[name]
        if tensor.shape != value.shape:
            raise ValueError(f"{name} has shape {tensor.shape}, wanted {value.shape}")
        with np.errstate(all="ignore"):
            tensor = tensor.astype(value.dtype)
        if not np.isfinite(tensor).all():
            raise ValueError(f"{name} holds numbers that are not finite")
        return jax.numpy.asarray(tensor)

    return jax.tree_util.tree_map_with_path(leaf, tree)


def _path(path: tuple[Any, ...]) -> str:
    return "".join(
        "." + str(getattr(key, "name", getattr(key, "idx", getattr(key, "key", key))))
        for key in path
    )

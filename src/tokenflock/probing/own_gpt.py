"""A model that `tokenflock gpt train` wrote, behind `Model`. It needs no torch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.block import Block
from tokenflock.errors import UserError, require
from tokenflock.gpt.checkpoint import KIND, Config, fresh, named
from tokenflock.gpt.checkpoint import load as load_checkpoint
from tokenflock.gpt.fast import EPSILON
from tokenflock.gpt.gpt import GPT, GPTBlock
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import Shape
from tokenflock.gpt.watching import states
from tokenflock.parts import LayerNorm, NoPositions, Peri, Rotary
from tokenflock.precision import cast, precision
from tokenflock.probing.blocks import TrainedLayer
from tokenflock.probing.model import Facts, Prompt, Trace
from tokenflock.probing.options import Recording, Variant
from tokenflock.probing.texts import Text
from tokenflock.shapes import Array


@dataclass(frozen=True)
class OwnGPT:
    """A model that was trained here: it encodes texts and records its tokens by itself."""

    network: LanguageModel
    config: Config
    facts: Facts

    @cached_property
    def _digest(self) -> str:
        total = hashlib.sha256()
        for name, tensor in sorted(named(self.network, "model").items()):
            total.update(name.encode() + np.ascontiguousarray(tensor).tobytes())
        return total.hexdigest()

    def digest(self) -> str:
        """sha256 of all weights, by name."""
        return self._digest

    def encode(self, text: Text, length: int) -> Prompt:
        """The first tokens of a text."""
        alphabet = self.config.alphabet
        ids = np.asarray(
            text.ids if text.ids is not None else alphabet.encode(text.text), np.int64
        )[:length]
        fits = len(ids) > 0 and ids.min() >= 0 and ids.max() < alphabet.size
        require(
            bool(fits),
            "texts",
            f"of tokens from 0 to {alphabet.size - 1}, one or more",
            f"{text.text[:40]!r}",
        )
        return Prompt(text.text, ids, np.zeros(len(ids), bool), tuple(alphabet.words(ids)))

    def record(self, prompts: Sequence[Prompt], size: int, recording: Recording) -> Trace:
        """Tokens of some prompts at the layers of the recording, zero where a prompt has ended."""
        ids, here = _padded(prompts, size)
        if isinstance(self.network, GPT):
            return self._record_gpt(self.network, ids, here, recording)
        if recording.attends or recording.sublayers:
            raise UserError(
                "attention and sublayers are told by the rung gpt, not by"
                f" {self.config.shape.rung}; leave them out"
            )
        with precision(self.facts.dtype):
            x = states(cast(self.network, self.facts.dtype), jnp.asarray(ids), None)
        return Trace(_streams(np.asarray(x), here, recording))

    def _record_gpt(
        self, network: GPT, ids: np.ndarray, here: np.ndarray, recording: Recording
    ) -> Trace:
        depth, dtype = self.facts.depth, self.facts.dtype
        if recording.final_norm and depth in recording.places(depth):
            raise UserError(
                "final_norm is not known of a model that was trained here; leave it out"
            )
        with precision(dtype):
            network = cast(network, dtype)
            if not (recording.attends or recording.sublayers):
                x = np.asarray(states(network, jnp.asarray(ids), depth))
                return Trace(_streams(x, here, recording))
            x, between, A = map(np.asarray, _everything(network, jnp.asarray(ids), depth))
        return Trace(
            _streams(x, here, recording),
            _attention(A, here, recording) if recording.attention else None,
            _entropy(A, here, recording) if recording.entropy else None,
            _streams(between, here, recording) if recording.sublayers else None,
        )

    def blocks(self) -> list[TrainedLayer]:
        """The layers as matrices in the letters of the theory, which `follow` and `particle_system`
        read.
        """
        shape, network = self.config.shape, self.network
        told = shape.norm in ("pre", "post") and shape.positions != "rotary"
        if not (isinstance(network, GPT) and told):
            raise UserError(
                f"the matrices of {self.facts.name} do not tell its layers: that needs the rung"
                " gpt, pre- or post-norm, and positions that are added, not rotary"
            )
        return [_block(block, shape.norm == "pre") for block in network.blocks]

    def laws(self) -> list[Block]:
        """The layers as laws of motion, in order; for a model that shares its layer, that one."""
        network = self.network
        if not isinstance(network, GPT) or network.shape.norm == "ngpt":
            raise UserError(
                f"{self.facts.name} is no Block: that needs the rung gpt and pre-, post- or peri-LN"
                " (its nGPT norms queries and keys, with a gain for each coordinate)"
            )
        return [_law(block, network.shape) for block in network.blocks]


def load(folder: str | os.PathLike[str], variant: Variant = Variant()) -> OwnGPT:
    """The model of a checkpoint.

    `variant` may ask for another depth (shared layers) or for fresh weights.
    """
    checkpoint = load_checkpoint(folder)
    shape, dtype = checkpoint.config.shape, variant.dtype
    require(dtype in (None, "float32", "float64"), "dtype", "float32 or float64", repr(dtype))
    require(
        variant.heads in (None, shape.heads),
        "heads",
        "left out for a model that was trained here",
        variant.heads,
    )
    network = fresh(shape, variant.seed) if variant.untrained else checkpoint.model
    depth = shape.layers if variant.depth is None else variant.depth
    if depth != shape.layers and not (shape.shared and shape.rung == "gpt"):
        raise UserError(
            f"depth = {depth}: the {shape.layers} layers of {folder} have weights of their own;"
            " only --shared models run deeper"
        )
    require(depth >= 0, "depth", "0 or more", depth)
    suffix = f" (untrained, seed {variant.seed})" if variant.untrained else ""
    facts = Facts(
        name=Path(folder).resolve().name + suffix,
        source=str(folder),
        architecture=KIND,
        width=shape.width,
        heads=shape.heads,
        depth=depth,
        own_depth=shape.layers,
        room=shape.context,
        dtype=dtype or "float32",
        variant=variant,
    )
    return OwnGPT(network, checkpoint.config, facts)


def _block(layer: GPTBlock, pre: bool) -> TrainedLayer:
    heads, d = layer.attention.heads, layer.attention.mix.shape[0]
    # (heads, m, d) each
    Q, K, V = np.asarray(layer.attention.qkv, float).reshape(d, 3, heads, -1).transpose(1, 2, 3, 0)
    O = np.asarray(layer.attention.mix, float).reshape(heads, -1, d).swapaxes(1, 2)  # (heads, d, m)
    A, W = np.asarray(layer.perceptron.up, float).T, np.asarray(layer.perceptron.down, float).T
    arrays: dict[str, Any] = {"Q": Q, "K": K, "V": V, "O": O, "A": A, "W": W}
    biases: dict[str, Any] = {name: np.zeros(Q.shape[:2]) for name in ("q", "k", "v")}
    biases |= {"o": np.zeros(d), "a": np.zeros(len(A)), "b": np.zeros(d)}
    first, second = (_norm(move.gains[0]) for move in layer.moves)
    return TrainedLayer(
        **arrays,
        **biases,
        first=first,
        second=second,
        scale=Q.shape[1] ** -0.5,
        activation="gelu_new",
        pre=pre,
        causal=True,
    )


def _law(layer: GPTBlock, shape: Shape) -> Block:
    told = _block(layer, shape.norm != "post").as_block()
    positions = Rotary() if shape.positions == "rotary" else NoPositions()
    if shape.norm != "peri":
        return replace(told, positions=positions)
    gains = [move.gains[k] for k in (0, 1) for move in layer.moves]  # both before, both after
    return replace(told, positions=positions, norm=Peri(*map(_norm, gains)))


def _norm(gain: Array) -> LayerNorm:
    arrays: dict[str, Any] = {"gain": np.asarray(gain, float), "shift": np.zeros(len(gain))}
    return LayerNorm(**arrays, epsilon=EPSILON)


@eqx.filter_jit
def _everything(model: GPT, ids: Array, depth: int) -> tuple[Array, Array, Array]:
    """Tokens, tokens after attention (layer, batch, time, width), and attention (layer, batch,
    head, time, time).

    The last two are NaN at layer 0, at which no layer ends.
    """
    x = [model.start(ids)]
    between, A = [], []
    for k in range(depth):
        block = model.blocks[k % len(model.blocks)]
        A.append(block.attention.matrix(block.moves[0].read(x[-1]))[0])
        between.append(block.moves[0](block.attention, x[-1], 1.0, None))
        x.append(block.moves[1](block.perceptron, between[-1], 1.0, None))
    return jnp.stack(x), _after_nothing(between), _after_nothing(A)


def _after_nothing(rows: list[Array]) -> Array:
    return jnp.stack([jnp.full_like(rows[0], jnp.nan), *rows])


def _padded(prompts: Sequence[Prompt], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids, and whether there is a token, (prompt, token)."""
    ids = np.zeros((len(prompts), size), np.int32)
    here = np.zeros((len(prompts), size), bool)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)], here[row, : len(prompt)] = prompt.ids, True
    return ids, here


def _places(x: np.ndarray, recording: Recording) -> list[int]:
    return list(recording.places(len(x) - 1))


def _streams(x: np.ndarray, here: np.ndarray, recording: Recording) -> np.ndarray:
    """(layer, prompt, token, coord) as (prompt, layer, token, coord), zero on padding."""
    x = x[_places(x, recording)].transpose(1, 0, 2, 3)
    if recording.normalise:
        x = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.finfo(x.dtype).tiny)
    return np.where(here[:, None, :, None], x, 0)


def _attention(A: np.ndarray, here: np.ndarray, recording: Recording) -> np.ndarray:
    both = here[:, :, None] & here[:, None, :]
    A = A[_places(A, recording)].transpose(1, 0, 2, 3, 4)
    return np.where(both[:, None, None] | np.isnan(A), A, 0).astype(np.float32)


def _entropy(A: np.ndarray, here: np.ndarray, recording: Recording) -> np.ndarray:
    A = A[_places(A, recording)].transpose(1, 0, 2, 3, 4)
    rows = np.asarray(jax.scipy.special.entr(jnp.asarray(A))).sum(axis=-1)
    return np.where(here[:, None, None], rows, np.nan).astype(np.float32)

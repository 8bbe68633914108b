"""The tokens of a model that was trained here, layer by layer, in the shape of a simulation.

And while it is trained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.errors import UserError, require
from tokenflock.gpt.checkpoint import KIND, Config, fresh, load, named
from tokenflock.gpt.fast import EPSILON
from tokenflock.gpt.gpt import GPT, Block
from tokenflock.gpt.language import LanguageModel
from tokenflock.observables import ClusterCount, EffectiveRank, MeanCosine, Observable
from tokenflock.precision import cast, precision
from tokenflock.probing.blocks import Block as Matrices
from tokenflock.probing.blocks import Norm
from tokenflock.probing.layers import probe as probe_layers
from tokenflock.probing.prompts import Prompt
from tokenflock.probing.recording import Recorded, Wanted
from tokenflock.probing.surveying import NEAR, Energies
from tokenflock.probing.texts import Text, Texts, beside
from tokenflock.shapes import Array
from tokenflock.verbs import save_load as results
from tokenflock.verbs.measure import measure


@dataclass(frozen=True)
class Trained:
    """A model that was trained here, as `probe` wants it: it encodes texts and records its tokens
    by itself.
    """

    network: LanguageModel
    config: Config
    name: str
    depth: int
    source: str
    dtype: str = "float32"
    revision: str = ""

    @cached_property
    def digest(self) -> str:
        """sha256 of all weights, by name."""
        whole = hashlib.sha256()
        for name, tensor in sorted(named(self.network, "model").items()):
            whole.update(name.encode() + np.ascontiguousarray(tensor).tobytes())
        return whole.hexdigest()

    @property
    def room(self) -> int:
        return self.config.shape.context

    @property
    def model(self) -> Any:
        """What the recipe tells of a model, in the words of transformers."""
        shape = self.config.shape
        config = SimpleNamespace(
            model_type=KIND,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            vocab_size=shape.vocab,
        )
        return SimpleNamespace(config=config, dtype=self.dtype)

    def encode(self, text: Text, length: int) -> Prompt:
        """The first tokens of a text."""
        alphabet = self.config.alphabet
        ids = np.asarray(
            text.ids if text.ids is not None else alphabet.encode(text.text), np.int64
        )[:length]
        fits = len(ids) > 0 and ids.min() >= 0 and ids.max() < alphabet.size
        require(
            fits,
            "texts",
            f"of tokens from 0 to {alphabet.size - 1}, one or more",
            f"{text.text[:40]!r}",
        )
        return Prompt(text.text, ids, np.zeros(len(ids), bool), tuple(alphabet.words(ids)))

    def record(self, prompts: Sequence[Prompt], size: int, wanted: Wanted) -> Recorded:
        """Tokens of some prompts at the wanted layers, zero where a prompt has ended."""
        ids = np.zeros((len(prompts), size), np.int32)
        here = np.zeros((len(prompts), size), bool)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)], here[row, : len(prompt)] = prompt.ids, True
        more = wanted.attention or wanted.entropy or wanted.sublayers
        if more and not isinstance(self.network, GPT):
            raise UserError(
                "attention and sublayers are told by the rung gpt, not by"
                f" {self.config.shape.rung}; leave them out"
            )
        with precision(self.dtype):
            network = cast(self.network, self.dtype)
            if more:
                x, halfway, A = map(np.asarray, _told(network, jnp.asarray(ids), self.depth))
            else:
                x, halfway, A = (
                    np.asarray(_states(network, jnp.asarray(ids), self._passes)),
                    None,
                    None,
                )
        x = _arranged(x, here, wanted)
        if wanted.final_norm and isinstance(self.network, GPT) and self.depth in wanted.layers:
            raise UserError(
                "final_norm is not known of a model that was trained here; leave it out"
            )
        return Recorded(
            x,
            _matrices(A, here, wanted) if wanted.attention else None,
            _entropies(A, here, wanted) if wanted.entropy else None,
            _arranged(halfway, here, wanted) if wanted.sublayers else None,
        )

    def blocks(self) -> list[Matrices]:
        """The layers as matrices in the letters of the theory, which `follow` and `particle_system`
        read.
        """
        shape = self.config.shape
        if shape.rung != "gpt" or shape.norm not in ("pre", "post") or shape.positions == "rotary":
            raise UserError(
                f"the matrices of {self.name} do not tell its layers: that needs the rung gpt, pre-"
                " or post-norm, and positions that are added, not rotary"
            )
        return [_matrices_of(block, shape.norm == "pre") for block in self.network.blocks]

    @property
    def _passes(self) -> int | None:
        return self.depth if isinstance(self.network, GPT) else None


def loaded(folder: str | Path, variant: Any, dtype: str | None = None) -> Trained:
    """A checkpoint as `probe` wants it.

    `variant` may ask for another depth (shared layers) or for fresh weights.
    """
    found = load(folder)
    shape = found.config.shape
    require(dtype in (None, "float32", "float64"), "dtype", "float32 or float64", repr(dtype))
    require(
        variant.heads in (None, shape.heads),
        "heads",
        "left out for a model that was trained here",
        variant.heads,
    )
    network = fresh(shape, variant.seed) if variant.untrained else found.model
    depth = shape.layers if variant.depth is None else variant.depth
    if depth != shape.layers and not (shape.shared and shape.rung == "gpt"):
        raise UserError(
            f"depth = {depth}: the {shape.layers} layers of {folder} have weights of their own;"
            " only --shared models run deeper"
        )
    require(depth >= 0, "depth", "0 or more", depth)
    name = Path(folder).resolve().name + (
        f" (untrained, seed {variant.seed})" if variant.untrained else ""
    )
    return Trained(network, found.config, name, depth, str(folder), dtype or "float32")


def probe(
    folder: str | Path, texts: Texts | None = None, depth: int | None = None, **options: Any
) -> xr.Dataset:
    """`tokenflock.probe` of a checkpoint.

    On the passages of held-out text that lie beside it unless texts are given.
    """
    texts = beside(folder) if texts is None else texts
    require(texts is not None, "texts", f"given, since {folder} has no prompts.json", "none")
    return probe_layers(folder, texts, depth, **options)


def _matrices_of(block: Block, pre: bool) -> Matrices:
    heads, d = block.attention.heads, block.attention.mix.shape[0]
    Q, K, V = (
        np.asarray(block.attention.qkv, float).reshape(d, 3, heads, -1).transpose(1, 2, 3, 0)
    )  # (heads, m, d) each
    O = np.asarray(block.attention.mix, float).reshape(heads, -1, d).swapaxes(1, 2)  # (heads, d, m)
    A, W = np.asarray(block.perceptron.up, float).T, np.asarray(block.perceptron.down, float).T
    none = np.zeros(Q.shape[:2])
    first, second = (
        Norm(np.asarray(move.gains[0], float), np.zeros(d), EPSILON) for move in block.moves
    )
    scale = Q.shape[1] ** -0.5
    return Matrices(
        Q,
        K,
        V,
        O,
        none,
        none,
        none,
        np.zeros(d),
        A,
        np.zeros(len(A)),
        W,
        np.zeros(d),
        first,
        second,
        scale,
        "gelu_new",
        pre,
        causal=True,
    )


@dataclass(frozen=True)
class Watcher:
    """Measures the tokens of some passages at chosen steps of a training, into `watch.nc` beside
    the checkpoint: mean cosine, clusters, effective rank and energies, (step, prompt, layer)."""

    folder: Path
    ids: np.ndarray  # (prompt, token)
    steps: frozenset[int]

    def look(self, model: LanguageModel, step: int) -> None:
        block = followed(model, jnp.asarray(self.ids)).drop_vars("x").expand_dims(step=[step])
        path = self.folder / "watch.nc"
        if path.is_file():
            before = results.load(path)
            block = xr.concat(
                [before.sel(step=before.step < step), block], "step", data_vars="minimal"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        results.save(block, path)


def followed(
    model: LanguageModel,
    ids: Array,
    depth: int | None = None,
    observe: Sequence[Observable] | None = None,
) -> xr.Dataset:
    """The tokens of passages `ids` (prompt, token) in a model at hand, layer by layer, and what is
    measured on them: mean cosine, clusters, effective rank and energies unless given."""
    x = np.asarray(_states(model, ids, depth)).transpose(1, 0, 2, 3)
    block = xr.Dataset(
        {"x": (("prompt", "layer", "token", "coord"), x)}, {"layer": np.arange(x.shape[1])}
    )
    return measure(
        block,
        (
            [MeanCosine(), ClusterCount(delta=NEAR), EffectiveRank(), Energies()]
            if observe is None
            else observe
        ),
    )


@eqx.filter_jit
def _states(model: LanguageModel, ids: Array, depth: int | None) -> Array:
    return model.states(ids) if depth is None else model.states(ids, depth)


@eqx.filter_jit
def _told(model: GPT, ids: Array, depth: int) -> tuple[Array, Array, Array]:
    """Tokens, tokens after attention (layer, batch, time, width), and attention (layer, batch,
    head, time, time).

    The last two are NaN at layer 0, at which no layer ends.
    """
    x = [model.start(ids)]
    halfway, A = [], []
    for k in range(depth):
        block = model.blocks[k % len(model.blocks)]
        A.append(block.attention.matrix(block.moves[0].read(x[-1]))[0])
        halfway.append(block.moves[0](block.attention, x[-1], 1.0, None))
        x.append(block.moves[1](block.perceptron, halfway[-1], 1.0, None))
    return jnp.stack(x), _after_nothing(halfway), _after_nothing(A)


def _after_nothing(found: list[Array]) -> Array:
    return jnp.stack([jnp.full_like(found[0], jnp.nan), *found])


def _arranged(x: np.ndarray, here: np.ndarray, wanted: Wanted) -> np.ndarray:
    """(layer, prompt, token, coord) as (prompt, layer, token, coord), zero on padding."""
    x = x[list(wanted.layers)].transpose(1, 0, 2, 3)
    if wanted.normalise:
        x = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.finfo(x.dtype).tiny)
    return np.where(here[:, None, :, None], x, 0)


def _matrices(A: np.ndarray, here: np.ndarray, wanted: Wanted) -> np.ndarray:
    both = here[:, :, None] & here[:, None, :]
    A = A[list(wanted.layers)].transpose(1, 0, 2, 3, 4)
    return np.where(both[:, None, None] | np.isnan(A), A, 0).astype(np.float32)


def _entropies(A: np.ndarray, here: np.ndarray, wanted: Wanted) -> np.ndarray:
    A = A[list(wanted.layers)].transpose(1, 0, 2, 3, 4)
    rows = np.asarray(jax.scipy.special.entr(jnp.asarray(A))).sum(axis=-1)
    return np.where(here[:, None, None], rows, np.nan).astype(np.float32)

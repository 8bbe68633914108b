"""`probe`: a real Transformer, followed layer by layer in the shape of a simulation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.errors import UserError, require
from tokenflock.observables.observable import Observable
from tokenflock.probing.loading import Loaded, Variant, load
from tokenflock.probing.prompts import Prompt, encode
from tokenflock.probing.recording import Recorded, Wanted, record
from tokenflock.probing.streaming import File, Memory
from tokenflock.probing.texts import Texts, as_texts
from tokenflock.verbs.measure import measure

LENGTH = 512  # tokens of a prompt, unless the model takes fewer


def probe(
    model: Any,
    texts: Texts,
    depth: int | None = None,
    *,
    heads: int | None = None,
    untrained: bool = False,
    seed: int = 0,
    layers: Sequence[int] | None = None,
    normalise: bool = False,
    special: bool = True,
    first: bool = True,
    length: int | None = None,
    attention: bool = False,
    entropy: bool = False,
    sublayers: bool = False,
    final_norm: bool = False,
    observe: Sequence[Observable] = (),
    states: bool = True,
    batch: int = 4,
    dtype: str | None = None,
    device: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Run a real Transformer on texts and return its tokens layer by layer.

    Args: model: a folder (of transformers, or one that `tokenflock gpt train` wrote), a name on the
      Hugging Face hub, or a model of transformers that is loaded already. texts: one text, many, a
      `Path`, or what `tokenflock.probing.texts` gives (ready ids for models without a tokenizer).
      depth: passes of the layer, for models whose layers share their weights (ALBERT); those of its
      config unless given. heads: cut the same weights into another number of heads. untrained: the
      same architecture with fresh weights: the control. seed: of the fresh weights. layers: which
      layers to keep, 0 being what goes into the first block; negative ones count from the end. All
      unless given. normalise: divide tokens by their length. special: let special tokens ([CLS],
      [SEP]) count. The model always sees them. first: let the first token (the attention sink of
      decoders) count. length: tokens a text is cut to; 512 or what the model takes unless given.
      attention: keep the attention matrices, (prompt, layer, head, token, other). entropy: keep the
      entropy of each row of attention, in nats. sublayers: keep the stream between attention and
      feed-forward part as `x_attention`; see `halves`. final_norm: take the last layer after the
      norm that decoders end with. observe: observables to add, measured batch by batch in double
      precision. states: keep the tokens `x`; without, only what is observed. batch: prompts run at
      once. It changes no number. dtype: 'float32' unless given; 'float64', 'bfloat16', 'float16'.
      device: where torch runs; a GPU if there is one unless given. out: a netCDF file to write to,
      prompt by prompt, for results that do not fit in memory; it is read back lazily. progress:
      called with the share of the work that is done.

    Returns a Dataset with `x` (prompt, layer, token, coord), weights `w` (prompt, token) that are
    zero on padding and on what does not count, `id` and `word` of each token, and in `attrs` the
    recipe. `measure` and, for one prompt, every plot take it.
    """
    variant = Variant(depth, heads, untrained, seed)
    loaded = load(model, variant, dtype, device)
    length = _length(loaded, length)
    prompts = [encode(loaded, text, length) for text in as_texts(texts)]
    for k, prompt in enumerate(prompts):
        _check_tokens(k, prompt, special, first)
    wanted = Wanted(
        _layers(layers, loaded.depth), normalise, attention, entropy, sublayers, final_norm
    )
    require(batch >= 1, "batch", "1 or more", batch)
    require(
        states or observe or attention or entropy,
        "states",
        "True where nothing else is kept",
        states,
    )
    size = max(map(len, prompts))
    sink = Memory() if out is None else File(out, len(prompts))
    attrs = _attrs(loaded, variant, wanted, special, first, length, observe)
    with sink:
        for start in range(0, len(prompts), batch):
            part = prompts[start : start + batch]
            block = _dataset(
                part,
                record(loaded, part, size, wanted),
                size,
                wanted.layers,
                special,
                first,
                attrs,
                start,
            )
            block = _measured(block, observe)
            sink.add(block if states else block.drop_vars("x"))
            if progress:
                progress((start + len(part)) / len(prompts))
    return sink.result()


def halves(result: xr.Dataset) -> xr.Dataset:
    """A result with sublayers as one of twice as many layers: 0, 0.5 (after attention), 1 (after
    the MLP), 1.5, ...

    Everything that works on layers works on these.
    """
    require(
        "x_attention" in result,
        "result",
        "a probe with sublayers=True",
        sorted(map(str, result.data_vars)),
    )
    between = result["x_attention"].isel(layer=result["layer"].values > 0)
    between = between.assign_coords(layer=between["layer"] - 0.5)
    whole = result["x"].assign_coords(layer=result["layer"].astype(float))
    x = xr.concat([whole, between], "layer", coords="minimal", compat="override").sortby("layer")
    kept = [name for name in ("w", "id", "special") if name in result]
    return xr.Dataset({"x": x, **{name: result[name] for name in kept}}, attrs=result.attrs)


def _dataset(
    prompts: Sequence[Prompt],
    found: Recorded,
    size: int,
    layers: tuple[int, ...],
    special: bool,
    first: bool,
    attrs: dict[str, str],
    start: int,
) -> xr.Dataset:
    counted = _rows([prompt.counted(special, first) for prompt in prompts], size, 0.0, np.float64)
    variables = {
        "x": (("prompt", "layer", "token", "coord"), found.x, {"long_name": "tokens"}),
        "w": (
            ("prompt", "token"),
            counted / counted.sum(axis=1, keepdims=True),
            {"long_name": "weights"},
        ),
        "id": (
            ("prompt", "token"),
            _rows([prompt.ids for prompt in prompts], size, -1, np.int64),
            {"long_name": "token ids"},
        ),
        "special": (
            ("prompt", "token"),
            _rows([prompt.special for prompt in prompts], size, 0, np.int8),
        ),
    }
    if found.attention is not None:
        variables["attention"] = (("prompt", "layer", "head", "token", "other"), found.attention)
    if found.entropy is not None:
        words = {"long_name": "entropy of attention", "units": "nats"}
        variables["attention_entropy"] = (
            ("prompt", "layer", "head", "token"),
            found.entropy,
            words,
        )
    if found.x_attention is not None:
        words = {"long_name": "tokens after attention"}
        variables["x_attention"] = (("prompt", "layer", "token", "coord"), found.x_attention, words)
    coords = {
        "prompt": np.arange(start, start + len(prompts)),
        "layer": ("layer", np.asarray(layers), {"long_name": "layer"}),
        "word": (
            ("prompt", "token"),
            _rows([np.asarray(prompt.words, object) for prompt in prompts], size, "", object),
        ),
        "text": ("prompt", np.asarray([prompt.text for prompt in prompts], object)),
    }
    return xr.Dataset(variables, coords, attrs)


def _measured(block: xr.Dataset, observe: Sequence[Observable]) -> xr.Dataset:
    """A block with its observables, in double precision: among 100,000 pairs some lie so near a
    threshold that single precision puts them on its other side."""
    return (
        measure(block.assign(x=block["x"].astype(np.float64)), observe).assign(x=block["x"])
        if observe
        else block
    )


def _rows(rows: Sequence[np.ndarray], size: int, fill: Any, dtype: Any) -> np.ndarray:
    """Rows of different lengths as one array."""
    out = np.full((len(rows), size), fill, dtype)
    for k, row in enumerate(rows):
        out[k, : len(row)] = row
    return out


def _attrs(
    loaded: Loaded, variant: Variant, wanted: Wanted, special, first, length, observe
) -> dict[str, str]:
    config = loaded.model.config
    recipe = {
        "verb": "probe",
        "model": loaded.name,
        "source": loaded.source,
        "revision": loaded.revision,
        "sha256": loaded.digest,
        "architecture": config.model_type,
        "d": config.hidden_size,
        "depth": loaded.depth,
        "own_depth": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "untrained": variant.untrained,
        "seed": variant.seed,
        "layers": list(wanted.layers),
        "normalise": wanted.normalise,
        "special": special,
        "first": first,
        "length": length,
        "final_norm": wanted.final_norm,
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "observe": list(observe),
        "versions": recipes.versions("torch", "transformers"),
    }
    return {
        "title": f"{loaded.name}, {loaded.depth} layers",
        "model": loaded.name,
        "recipe": recipes.dumps(recipe),
    }


def _check_tokens(k: int, prompt: Prompt, special: bool, first: bool) -> None:
    count = int(prompt.counted(special, first).sum())
    if count < 2:
        raise UserError(
            f"text {k} ({prompt.text[:40]!r}) has too few tokens: {count} that count, and pairs"
            " need 2; give a longer text"
        )


def _length(loaded: Loaded, length: int | None) -> int:
    if length is None:
        return min(LENGTH, loaded.room)
    require(
        2 <= length <= loaded.room,
        "length",
        f"from 2 to the {loaded.room} tokens that {loaded.name} takes",
        length,
    )
    return length


def _layers(layers: Sequence[int] | None, depth: int) -> tuple[int, ...]:
    if layers is None:
        return tuple(range(depth + 1))
    found = [int(layer) + (depth + 1 if layer < 0 else 0) for layer in layers]
    fits = bool(found) and all(0 <= layer <= depth for layer in found)
    require(fits, "layers", f"from 0 to {depth}", list(layers))
    return tuple(sorted(set(found)))

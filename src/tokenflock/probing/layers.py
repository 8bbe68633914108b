"""`probe`: a real Transformer, followed layer by layer in the shape of a simulation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError, require
from tokenflock.observables.observable import Observable, require_distinct
from tokenflock.probing.loading import load
from tokenflock.probing.model import Facts, Model, Prompt, Trace
from tokenflock.probing.options import Recording, Selection, Variant
from tokenflock.probing.streaming import File, Memory
from tokenflock.probing.texts import Texts, as_texts, storable
from tokenflock.verbs.measure import measure

LENGTH = 512  # tokens of a prompt, unless the model takes fewer


def probe(
    model: Any,
    texts: Texts,
    depth: int | None = None,
    *,
    variant: Variant = Variant(),
    record: Recording = Recording(),
    tokens: Selection = Selection(),
    observe: Sequence[Observable] = (),
    batch: int = 4,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Run a real Transformer on texts and return its tokens layer by layer.

    Args:
      model: a folder (of transformers, or one that `tokenflock gpt train` wrote), a name on the
        Hugging Face hub, a model of transformers that is loaded already, or what
        `tokenflock.probing.load` gave.
      texts: one text, a list of them, a `Path` (.txt: paragraphs; .csv: its column `text`; .json
        or .jsonl: items), or `tokenflock.probing.Text`s (ready ids for models without a tokenizer).
      depth: passes of the layer, for models whose layers share their weights (ALBERT); those of its
        config unless given.
      variant: `Variant(heads, untrained, seed, dtype, device)`, how the model departs from its
        config.
      record: `Recording(layers, normalise, attention, entropy, sublayers, final_norm, states)`,
        what is kept: all layers and no attention unless said.
      tokens: `Selection(special, first, length)`, which tokens count.
      observe: observables to add, measured batch by batch in double precision.
      batch: prompts run at once; rounding depends on it, so take `Variant(dtype="float64")`.
      out: a netCDF file to write to, prompt by prompt, for results that do not fit in memory; it is
        read back lazily.
      progress: called with the share of the work that is done.

    Returns a Dataset with `x` (prompt, layer, token, coord), weights `w` (prompt, token) that are
    zero on padding and on what does not count, `id` and `word` of each token, and in `attrs` the
    recipe. `measure` and, for one prompt, every plot take it.
    """
    require_distinct(observe)
    read = as_texts(texts)
    loaded = load(model, variant.of_depth(depth))
    length = _length(loaded.facts, tokens.length)
    prompts = [loaded.encode(text, length) for text in read]
    for k, prompt in enumerate(prompts):
        _check_tokens(k, prompt, tokens)
    layers = record.places(loaded.facts.depth)
    _check_asked(record, observe, batch)
    size = max(map(len, prompts))
    _check_memory(loaded.facts, record, (len(prompts), len(layers), size), batch, out is None)
    sink = Memory() if out is None else File(out, len(prompts))
    attrs = _attrs(loaded, record, tokens, length, observe)
    with sink:
        for start in range(0, len(prompts), batch):
            part = prompts[start : start + batch]
            block = _dataset(part, loaded.record(part, size, record), layers, tokens, start)
            block = _measured(block.assign_attrs(attrs), observe)
            sink.add(block if record.states else block.drop_vars("x"))
            if progress:
                progress((start + len(part)) / len(prompts))
    return sink.result()


def _check_asked(record: Recording, observe: Sequence[Observable], batch: int) -> None:
    require(batch >= 1, "batch", "1 or more", batch)
    require(
        record.states or len(observe) > 0 or record.attends,
        "states",
        "True where nothing else is kept",
        record.states,
    )


def _check_memory(
    facts: Facts, record: Recording, shape: tuple[int, int, int], batch: int, kept: bool
) -> None:
    """Refuse what the memory cannot hold: the states and matrices of a batch, and, unless they are
    written to a file, those of all prompts.
    """
    prompts, layers, size = shape
    number = 8 if facts.dtype == "float64" else 4
    states = float(layers * size * facts.width * number) * (2 if record.sublayers else 1)
    matrices = float(facts.heads * size * size * 4) if record.attends else 0.0
    together = min(batch, prompts)
    what = f"{together:,} prompts at once, of {size:,} tokens in {layers:,} layers,"
    require_memory(
        together * (states + matrices * (facts.depth + layers * record.attention)),
        what,
        "write a smaller batch, e.g. batch=1, or record fewer layers",
    )
    if kept:
        held = states * record.states + matrices * layers * record.attention
        require_memory(
            prompts * held,
            f"{prompts:,} prompts of {size:,} tokens in {layers:,} layers",
            "write out='probe.nc', which keeps them on disk, or record fewer layers",
        )


def half_layers(result: xr.Dataset) -> xr.Dataset:
    """A result with sublayers as one of twice as many layers: 0, 0.5 (after attention), 1 (after
    the MLP), 1.5, ...

    Everything that works on layers works on these.
    """
    require(
        "x_attention" in result,
        "result",
        "a probe with record=Recording(sublayers=True)",
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
    trace: Trace,
    layers: tuple[int, ...],
    tokens: Selection,
    start: int,
) -> xr.Dataset:
    """A batch as a Dataset; `start` is the number of its first prompt."""
    size = trace.x.shape[2]
    counted = _rows([tokens.counted(prompt.special) for prompt in prompts], size, 0.0, np.float64)
    variables: dict[str, Any] = {
        "x": (("prompt", "layer", "token", "coord"), trace.x, {"long_name": "tokens"}),
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
    if trace.attention is not None:
        variables["attention"] = (("prompt", "layer", "head", "token", "other"), trace.attention)
    if trace.entropy is not None:
        words = {"long_name": "entropy of attention", "units": "nats"}
        variables["attention_entropy"] = (
            ("prompt", "layer", "head", "token"),
            trace.entropy,
            words,
        )
    if trace.x_attention is not None:
        words = {"long_name": "tokens after attention"}
        variables["x_attention"] = (("prompt", "layer", "token", "coord"), trace.x_attention, words)
    coords = {
        "prompt": np.arange(start, start + len(prompts)),
        "layer": ("layer", np.asarray(layers), {"long_name": "layer"}),
        "word": (
            ("prompt", "token"),
            _rows([_strings(prompt.words) for prompt in prompts], size, "", object),
        ),
        "text": ("prompt", _strings([prompt.text for prompt in prompts])),
    }
    return xr.Dataset(variables, coords)


def _strings(texts: Sequence[str]) -> np.ndarray:
    return np.asarray([storable(text) for text in texts], object)


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
    model: Model,
    recording: Recording,
    tokens: Selection,
    length: int,
    observe: Sequence[Observable],
) -> dict[str, str]:
    facts = model.facts
    recipe = {
        "verb": "probe",
        "model": facts.name,
        "source": facts.source,
        "revision": facts.revision,
        "sha256": model.digest(),
        "architecture": facts.architecture,
        "d": facts.width,
        "depth": facts.depth,
        "own_depth": facts.own_depth,
        "heads": facts.heads,
        "untrained": facts.variant.untrained,
        "seed": facts.variant.seed,
        "layers": list(recording.places(facts.depth)),
        "normalise": recording.normalise,
        "special": tokens.special,
        "first": tokens.first,
        "length": length,
        "final_norm": recording.final_norm,
        "dtype": facts.dtype,
        "observe": list(observe),
        "versions": recipes.versions("torch", "transformers"),
    }
    return {
        "title": f"{facts.name}, {facts.depth} layers",
        "model": facts.name,
        "recipe": recipes.dumps(recipe),
    }


def _check_tokens(k: int, prompt: Prompt, tokens: Selection) -> None:
    count = int(tokens.counted(prompt.special).sum())
    if count < 2:
        raise UserError(
            f"text {k} ({prompt.text[:40]!r}) has too few tokens: {count} that count, and pairs"
            " need 2; give a longer text"
        )


def _length(facts: Facts, length: int | None) -> int:
    if length is None:
        return min(LENGTH, facts.room)
    require(
        2 <= length <= facts.room,
        "length",
        f"from 2 to the {facts.room} tokens that {facts.name} takes",
        length,
    )
    return length

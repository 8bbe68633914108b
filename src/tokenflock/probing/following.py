"""How far the idealised model follows the real one: the same embeddings, the same matrices, and
less and less left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics import CausalHeads, MultiHead, NeuralODE
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.observables import ClusterCount, Histogram, MeanCosine, PairDensity
from tokenflock.precision import cast, precision
from tokenflock.probing.blocks import KNOWN, TrainedLayer
from tokenflock.probing.layers import probe
from tokenflock.probing.loading import load
from tokenflock.probing.options import Selection, Variant
from tokenflock.probing.surveying import NEAR
from tokenflock.probing.texts import Texts, as_texts
from tokenflock.shapes import Tokens, Weights
from tokenflock.solvers import Layer
from tokenflock.spaces.sphere import normalise
from tokenflock.verbs.measure import measure

SYSTEMS = ("model", "attention", "feed-forward", "normalisation", "everything")
WORDS = {
    "model": "the model itself",
    "attention": "multi-head attention alone, on the sphere: x <- normalise(x + sum_h A^h V_h x)",
    "feed-forward": "the same, then the feed-forward part, on the sphere",
    "normalisation": (
        "both, with the model's layer norms in place of the sphere, biases of attention left out"
    ),
    "everything": "all of it, run by this library from the extracted matrices",
}


def follow(
    model: Any,
    texts: Texts,
    depth: int | None = None,
    *,
    length: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """Run the idealised dynamics of a model beside the model, from the model's own embeddings.

    `system` is the model, attention alone, with the feed-forward part, with the true normalisation,
    and everything. On the sphere a token of length R is R u, with R the mean length of the model's
    tokens at that layer. Where a model normalises after each part (BERT), attention reads R u, so
    that beta = scale R^2, and the feed-forward part reads tokens of the length that the norm before
    it gives. Where it normalises before each part (GPT-2), a part reads the direction through the
    gain of its norm, and what it adds is divided by R.

    Returns by system, prompt and layer: `mean_cosine`, `pair_density` (above 0.9), `cluster_count`,
    `histogram`, and how far each system is from the model: `histogram_distance` (Wasserstein, in
    units of the cosine) and `alignment` (mean cosine between a token there and the same token in
    the model).
    """
    texts = as_texts(texts)
    loaded = load(model, Variant(depth))
    blocks, name = loaded.blocks(), loaded.facts.name
    real = probe(loaded, texts, tokens=Selection(length=length))
    passes = [blocks[k % len(blocks)] for k in range(loaded.facts.depth)]
    parts = []
    for p in range(real.sizes["prompt"]):
        parts.append(_compared(passes, real.isel(prompt=[p])))
        if progress:
            progress((p + 1) / real.sizes["prompt"])
    data = xr.concat(
        parts, "prompt", data_vars="minimal", coords="minimal", compat="override", join="override"
    )
    recipe = recipes.dumps(recipes.loads(real.attrs["recipe"]) | {"verb": "follow"})
    return data.assign_attrs(title=f"{name} and its idealisations", model=name, recipe=recipe)


def _compared(passes: Sequence[TrainedLayer], probed: xr.Dataset) -> xr.Dataset:
    """All systems on one prompt.

    Padding stays, with weight zero, so that prompts of any length are one shape.
    """
    real = (probed["id"].values[0] >= 0).astype(np.float32)
    x, w = probed["x"].values[0], real / real.sum()
    runs = np.stack([x, *(_run(name, passes, x, w) for name in SYSTEMS[1:])])
    tokens = xr.Dataset(
        {"x": (("system", "prompt", "layer", "token", "coord"), runs[:, None]), "w": ("token", w)},
        {
            "system": list(SYSTEMS),
            "layer": probed["layer"].values,
            "prompt": probed["prompt"].values,
        },
    )
    measured = measure(
        tokens,
        [MeanCosine(), PairDensity(delta=NEAR), ClusterCount(delta=NEAR), Histogram(bins=100)],
    )
    measured = measured.drop_vars(["x", "w"])
    length = np.linalg.norm(runs, axis=-1, keepdims=True)
    unit = runs / np.where(length > 0, length, 1)
    alignment = np.sum(unit * unit[0], axis=-1) @ w  # (system, layer)
    below = measured["histogram"].cumsum("bin")
    distance = abs(below - below.sel(system="model")).sum("bin") * float(
        measured["bin"][1] - measured["bin"][0]
    )
    return measured.assign(
        alignment=(("system", "prompt", "layer"), alignment[:, None]), histogram_distance=distance
    )


def _run(name: str, passes: Sequence[TrainedLayer], x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Tokens of one system at every layer, (layer, n, d), from the model's embeddings x[0]."""
    lengths = np.linalg.norm(x, axis=-1) @ w
    on_sphere = name in ("attention", "feed-forward")
    with precision("float32"):
        weights = jnp.asarray(w)
        state = normalise(jnp.asarray(x[0])) if on_sphere else jnp.asarray(x[0])
        states = [np.asarray(state)]
        for block, length in zip(passes, lengths):
            if on_sphere:
                attention, mlp = cast(_idealised(block, float(length)), "float32")
                state = _sphere_step(
                    attention, mlp if name == "feed-forward" else None, state, weights
                )
            else:
                kept = block if name == "everything" else block.without_biases()
                state = _block_step(cast(kept, "float32"), state, weights)
            states.append(np.asarray(state))
    return np.stack(states)


def _idealised(block: TrainedLayer, R: float) -> tuple[Dynamics, NeuralODE]:
    """Attention and feed-forward part of a layer as dynamics of the theory, for directions of
    tokens of length R.
    """
    kind = KNOWN[block.activation]
    heads = CausalHeads if block.causal else MultiHead
    if block.pre:
        # the length is sqrt(d)
        first, second = (
            np.sqrt(len(norm.gain)) * norm.gain for norm in (block.first, block.second)
        )
        attention = heads(
            V=block.O @ block.V * first / R, Q=block.Q * first, K=block.K * first, beta=block.scale
        )
        return attention, NeuralODE(W=block.W / R, A=block.A * second, b=block.a, activation=kind)
    inner = block.first.radius  # the length of the tokens that the feed-forward part reads
    attention = heads(V=block.O @ block.V, Q=block.Q, K=block.K, beta=block.scale * R**2)
    return attention, NeuralODE(W=block.W / inner, A=block.A * inner, b=block.a, activation=kind)


@eqx.filter_jit
def _sphere_step(attention: Dynamics, mlp: NeuralODE | None, x: Tokens, w: Weights) -> Tokens:
    """The layer map of attention and then of the feed-forward part, each followed by the sphere."""
    x = Layer(h=1.0).step(attention, jnp.zeros(()), x, w, jax.random.key(0))
    return x if mlp is None else normalise(x + mlp.perceptron(x))


@eqx.filter_jit
def _block_step(block: TrainedLayer, x: Tokens, w: Weights) -> Tokens:
    return block(x, w)

"""The tables of docs/real-models.md: a weight-shared model passed beyond its depth, and what keeps
its tokens apart.

python benchmarks/trained_alberts.py ./plbert
python benchmarks/trained_alberts.py ./rxnmapper-albert --ids benchmarks/data/reactions.json

First the model as trained, with its weights cut into one head, with special tokens left out, and
with fresh weights (three seeds), at some numbers of passes: mean over prompts (for fresh weights
over seeds as well) and standard deviation. Then which near pairs are the same token. At last the
layer run from its matrices, biases of attention left out, with the norms as trained, without the
mean, without the shift, with a flat gain, and with neither, which is the sphere.
"""

from __future__ import annotations

import argparse

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import probing
from tokenflock.observables import ClusterCount, EffectiveRank, MeanCosine, PairDensity
from tokenflock.probing import Recording, Selection, Variant
from tokenflock.probing.blocks import Norm
from tokenflock.probing.surveying import NEAR
from tokenflock.verbs.measure import measure

OBSERVE = [MeanCosine(), PairDensity(delta=NEAR), ClusterCount(delta=NEAR), EffectiveRank()]
VARIANTS = {
    "trained": [{}],
    "one head": [{"variant": Variant(heads=1)}],
    "without special tokens": [{"tokens": Selection(special=False)}],
    "untrained": [{"variant": Variant(untrained=True, seed=seed)} for seed in range(3)],
}


class WithoutMean(Norm):
    """x / deviation: the mean stays."""

    def __call__(self, x):
        return (
            self.gain * x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + self.epsilon)
            + self.shift
        )


def flat(norm: Norm, shift: np.ndarray) -> Norm:
    """One gain for all coordinates; where the shift goes, tokens keep their length."""
    size = norm.radius if not shift.any() else np.linalg.norm(norm.gain)
    return Norm(np.full_like(norm.gain, size / np.sqrt(len(norm.gain))), shift, norm.epsilon)


NORMS = {
    "norms as trained": lambda norm: norm,
    "no mean subtraction": lambda norm: WithoutMean(norm.gain, norm.shift, norm.epsilon),
    "no shift": lambda norm: Norm(norm.gain, np.zeros_like(norm.shift), norm.epsilon),
    "flat gain": lambda norm: flat(norm, norm.shift),
    "no shift, flat gain": lambda norm: flat(norm, np.zeros_like(norm.shift)),
}


def passes(model: str, texts, at: list[int]) -> None:
    """Statistics of every variant, and of the trained one which near pairs are the same token."""
    for name, ways in VARIANTS.items():
        runs = [
            probing.probe(
                model, texts, at[-1], record=Recording(layers=at), observe=OBSERVE, batch=1, **how
            )
            for how in ways
        ]
        print(f"{name}, passes {at}")
        for one in OBSERVE:
            values = np.concatenate([run[one.name].values for run in runs])
            print(
                f"  {one.name:<15}",
                "  ".join(
                    f"{m:.3f} ± {s:.3f}" for m, s in zip(values.mean(0), values.std(0, ddof=1))
                ),
            )
        if name == "trained":
            same_tokens(runs[0])


def same_tokens(run: xr.Dataset) -> None:
    for layer in run.layer.values:
        near = same = both = total = 0
        for p in range(run.sizes["prompt"]):
            ids = run["id"].values[p]
            ids = ids[ids >= 0]
            x = run["x"].sel(layer=layer).values[p][: len(ids)]
            u = x / np.linalg.norm(x, axis=1, keepdims=True)
            pairs = np.triu_indices(len(ids), 1)
            N, S = (u @ u.T >= 0.9)[pairs], (ids[:, None] == ids)[pairs]
            near, same, both, total = (
                near + N.sum(),
                same + S.sum(),
                both + (N & S).sum(),
                total + len(N),
            )
        print(
            f"  layer {layer}: {both / max(near, 1):.3f} of {near} near pairs are the same token,"
            f" {same / total:.3f} of all"
        )


def norms(model: str, texts, at: list[int]) -> None:
    """The layer from its matrices, with parts of the norms taken out."""
    start = probing.probe(model, texts, at[-1], record=Recording(layers=[0]))
    blocks = [block.without_biases() for block in probing.extract(probing.load(model))]
    for name, change in NORMS.items():
        changed = [
            eqx.tree_at(lambda b: (b.first, b.second), one, (change(one.first), change(one.second)))
            for one in blocks
        ]
        rows = []
        for p in range(start.sizes["prompt"]):
            here = start["id"].values[p] >= 0
            states = [start["x"].values[p, 0]]
            for k in range(at[-1]):
                states.append(
                    probing.rerun_layer(changed[k % len(changed)], states[-1], here, "float32")
                )
            run = xr.Dataset(
                {
                    "x": (("layer", "token", "coord"), np.stack(states)[at]),
                    "w": ("token", here / here.sum()),
                }
            )
            rows.append(measure(run, OBSERVE[0]).mean_cosine.values)
        print(
            f"{name:<22} mean cosine at {at}:",
            "  ".join(f"{value:.2f}" for value in np.mean(rows, axis=0)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="the folder of an ALBERT")
    parser.add_argument(
        "--ids", help="a JSON file of prompts [default: prompts.json beside the model]"
    )
    parser.add_argument("--passes", default="0,1,12,24,48,96")
    args = parser.parse_args()
    texts = probing.texts.from_file(args.ids) if args.ids else probing.texts.beside(args.model)
    at = [int(one) for one in args.passes.split(",")]
    passes(args.model, texts, at)
    norms(args.model, texts, [12, 24])


if __name__ == "__main__":
    main()

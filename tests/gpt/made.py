"""Models whose weights are plain random numbers: nothing is drawn or compiled to make them."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np

from tokenflock.gpt import Shape
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel

SMALL = {"vocab": 7, "context": 8, "width": 12, "heads": 2, "depth": 2}
TOKENS = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 3, 5], [5, 5, 1, 0, 2]])


def made(shape: Shape, seed: int = 0, size: float = 0.4) -> LanguageModel:
    """A model of a shape with normal weights, those of a gain about one, in float64."""
    skeleton = eqx.filter_eval_shape(build, shape, jax.random.key(0))
    rng = np.random.default_rng(seed)

    def leaf(path, wanted):
        if not isinstance(wanted, jax.ShapeDtypeStruct):
            return wanted
        around = 1.0 if "gain" in jax.tree_util.keystr(path) else 0.0
        return around + size * rng.normal(size=wanted.shape)

    return jax.tree_util.tree_map_with_path(leaf, skeleton)

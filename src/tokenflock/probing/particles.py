"""A trained model as a particle system: its matrices, temperatures and spectra; and its layers, run
again from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from tokenflock.errors import require
from tokenflock.precision import cast, precision
from tokenflock.probing.blocks import TrainedLayer
from tokenflock.probing.loading import load
from tokenflock.probing.model import Model
from tokenflock.probing.options import Variant
from tokenflock.shapes import Tokens, Weights


def particle_system(
    model: Any, *, heads: int | None = None, untrained: bool = False, seed: int = 0
) -> xr.Dataset:
    """The matrices of a model in the letters of the theory, and what they say.

    `Q`, `K`, `V`, `O` by block and head; `gain` of both norms; `radius`, the length of a token as
    the norm leaves it;

        beta_h = scale radius^2 |Q_h^T K_h| / sqrt(d)
        (Frobenius norm: the beta of a model with Q^T K = I)

    and the eigenvalues of O_h V_h (`values`), of Q_h^T K_h (`attraction`), and of sum_h O_h V_h
    (`values_of_all`): where the real part of an eigenvalue of the values is positive, tokens are
    drawn that way.
    """
    variant = Variant(heads=heads, untrained=untrained, seed=seed)
    if not isinstance(model, Model):
        variant = replace(variant, dtype="float32", device="cpu")
    loaded = load(model, variant)
    blocks, name = loaded.blocks(), loaded.facts.name
    variables = {
        name: (("block", "head", *axes), np.stack([getattr(block, name) for block in blocks]))
        for name, axes in {"Q": "mj", "K": "mj", "V": "mj", "O": "jm"}.items()
    }
    variables |= {
        "gain": (
            ("block", "norm", "j"),
            np.stack([[block.first.gain, block.second.gain] for block in blocks]),
        ),
        "radius": (("block",), np.array([_radius(block) for block in blocks])),
        "beta": (("block", "head"), np.stack([effective_beta(block) for block in blocks])),
        "values": (
            ("block", "head", "m", "part"),
            np.stack([_spectrum(block.V, block.O) for block in blocks]),
        ),
        "attraction": (
            ("block", "head", "m", "part"),
            np.stack([_spectrum(block.K, np.swapaxes(block.Q, 1, 2)) for block in blocks]),
        ),
        "values_of_all": (
            ("block", "j", "part"),
            np.stack([_eigenvalues((block.O @ block.V).sum(axis=0)) for block in blocks]),
        ),
    }
    coords = {"norm": ["first", "second"], "part": ["real", "imaginary"]}
    return xr.Dataset(
        variables,
        coords,
        {"title": f"{name} as a particle system", "model": name, "d": loaded.facts.width},
    )


def effective_beta(block: TrainedLayer, radius: float | None = None) -> np.ndarray:
    """The inverse temperature of each head: that of a model with Q^T K = I whose logits have the
    same size.
    """
    d = block.Q.shape[-1]
    radius = _radius(block) if radius is None else radius
    size = np.linalg.norm(np.swapaxes(block.Q, 1, 2) @ block.K, axis=(1, 2))
    return block.scale * radius**2 * size / np.sqrt(d)


def rerun_layer(
    block: TrainedLayer, x: np.ndarray, counted: np.ndarray | None = None, dtype: str = "float64"
) -> np.ndarray:
    """The tokens (n, d) after one layer, computed from its matrices by this library.

    `counted`: which tokens are there.
    """
    require(np.ndim(x) == 2, "x", "tokens of shape (n, d)", np.shape(x))
    w = np.ones(len(x)) if counted is None else np.asarray(counted, float)
    with precision(dtype):
        return np.asarray(
            _step(cast(block, dtype), jnp.asarray(x, dtype), jnp.asarray(w / w.sum(), dtype))
        )


def reconstruction(blocks: Sequence[TrainedLayer], result: xr.Dataset) -> xr.DataArray:
    """Largest deviation, by prompt and layer, of each layer run again from the model's own one
    before (`result`: a probe).
    """
    x, real = result["x"].values, (result["id"] >= 0).values
    deviations = np.zeros((x.shape[0], x.shape[1] - 1))
    for p, tokens in enumerate(x):
        for layer, (before, after) in enumerate(pairwise(tokens)):
            again = rerun_layer(blocks[layer % len(blocks)], before, real[p])
            deviations[p, layer] = np.abs(again - after)[real[p]].max()
    return xr.DataArray(
        deviations, dims=("prompt", "layer"), coords={"layer": result["layer"].values[1:]}
    )


@eqx.filter_jit
def _step(block: TrainedLayer, x: Tokens, w: Weights) -> Tokens:
    return block(x, w)


def _radius(block: TrainedLayer) -> float:
    """What attention reads: tokens as the first norm leaves them (pre), or as the layer before left
    them (post).
    """
    return (block.first if block.pre else block.second).radius


def _spectrum(right: ArrayLike, left: ArrayLike) -> np.ndarray:
    """The eigenvalues of left right (d, d) that are not zero: those of right left (m, m), for each
    head.
    """
    return np.stack([_eigenvalues(product) for product in np.asarray(right) @ np.asarray(left)])


def _eigenvalues(matrix: ArrayLike) -> np.ndarray:
    """Real and imaginary parts (m, 2), the largest first."""
    values = np.linalg.eigvals(np.asarray(matrix))
    values = values[np.argsort(-np.abs(values))]
    return np.stack([values.real, values.imag], axis=-1)

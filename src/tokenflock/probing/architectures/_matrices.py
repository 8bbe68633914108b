"""The matrices of a layer from the parts of a torch module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenflock.parts import LayerNorm
from tokenflock.probing.blocks import TrainedLayer

Affine = tuple[np.ndarray, np.ndarray]  # a matrix and its bias


@dataclass(frozen=True)
class Parts:
    """The parts of a layer: modules with a weight and a bias, or pairs of arrays where a module
    keeps them another way."""

    three: Iterable[Any]  # queries, keys, values
    out: Any  # what heads say, mixed
    inner: Any  # the feed-forward part
    outer: Any
    first: Any  # the norm of attention
    second: Any  # the norm of the feed-forward part


def block(
    parts: Parts,
    heads: int,
    activation: Any,
    *,
    scale: float | None = None,
    pre: bool = False,
    causal: bool = False,
) -> TrainedLayer:
    """The layer that these parts make; `scale` is 1/sqrt(m) unless given."""
    (Q, q), (K, k), (V, v) = (_cut(*_affine(part), heads) for part in parts.three)
    (O, o), (A, a), (W, b) = (_affine(part) for part in (parts.out, parts.inner, parts.outer))
    O = np.moveaxis(O.reshape(O.shape[0], heads, -1), 1, 0)  # (heads, d, m)
    arrays: dict[str, Any] = {"Q": Q, "K": K, "V": V, "O": O, "A": A, "W": W}
    arrays |= {"q": q, "k": k, "v": v, "o": o, "a": a, "b": b}
    return TrainedLayer(
        **arrays,
        first=_norm(parts.first),
        second=_norm(parts.second),
        scale=Q.shape[1] ** -0.5 if scale is None else scale,
        activation=str(activation),
        pre=pre,
        causal=causal,
    )


def array(tensor: Any) -> np.ndarray:
    """A torch tensor as an array of doubles."""
    return tensor.detach().double().cpu().numpy()


def _affine(part: Any) -> Affine:
    return part if isinstance(part, tuple) else (array(part.weight), array(part.bias))


def _cut(weight: np.ndarray, bias: np.ndarray, heads: int) -> Affine:
    """A matrix (heads m, d) as (heads, m, d)."""
    return weight.reshape(heads, -1, weight.shape[1]), bias.reshape(heads, -1)


def _norm(part: Any) -> LayerNorm:
    arrays: dict[str, Any] = {"gain": array(part.weight), "shift": array(part.bias)}
    return LayerNorm(**arrays, epsilon=float(part.eps))

"""What is measured on every model unless something else is asked for."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from tokenflock.observables.cluster_count import ClusterCount
from tokenflock.observables.effective_rank import EffectiveRank
from tokenflock.observables.histogram import Histogram
from tokenflock.observables.mean_cosine import MeanCosine
from tokenflock.observables.observable import CosineObservable, Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.shapes import Array, Rows, Weights

NEAR = 0.1  # pairs of cosine above 1 - NEAR are near, and in one cluster


class Energies(CosineObservable):
    """The energy sum_ij w_i w_j e^{beta (<u_i, u_j> - 1)} of the directions u of tokens, for
    several beta: one at consensus.

    The convention `staircase` of `Energy`; directions, because tokens of a model are long.
    """

    dims: ClassVar[tuple[str, ...]] = ("beta",)

    betas: Array = eqx.field(default=(1.0, 4.0, 16.0))
    "inverse temperatures"

    def of_cosines(self, G: Rows, w: Weights) -> Array:
        """The energy for each beta."""
        return jnp.stack([w @ jnp.exp(beta * (G - 1)) @ w for beta in self.betas])

    def coords(self) -> dict[str, Any]:
        """The inverse temperatures."""
        return {"beta": np.asarray(self.betas)}


def survey(bins: int = 100) -> list[Observable]:
    """Mean cosine, share of near pairs, clusters, effective rank, energies, and the distribution of
    cosines.
    """
    return [
        MeanCosine(),
        PairDensity(delta=NEAR),
        ClusterCount(delta=NEAR),
        EffectiveRank(),
        Energies(),
        Histogram(bins),
    ]
